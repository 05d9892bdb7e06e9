//! Stores the result types (shapes) of an upstream server's tools that were inferred from earlier results. The shapes
//! are kept in memory and in a file. The file may be deleted at any time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_base::files::{self, FileVersion};
use lockhouse_cluster::{ItemLock, SharedItem, Unavailable};
use lockhouse_protocol::ToolName;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use super::super::Tool;
use super::sample::{ELEMENTS_MAX, Sample, strings};
use super::shape::Shape;

/// Version of the file format. Files of other versions are ignored.
const VERSION: u32 = 1;
/// Maximum size in bytes of the stored shapes of one server.
/// Bound: tools and searches.
const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Maximum number of tools of one upstream server whose results are observed.
/// Bound: tools and searches.
const TOOLS_MAX: usize = 500;
/// Maximum size of a result that is observed, in bytes.
/// Bound: tools and searches.
const RESULT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size of the arguments of a call that is observed, in bytes.
/// Bound: tools and searches.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The results of this number of first calls of each tool are all observed. After them, the result of a call is
/// observed only if the number of the call (counted from 1) is a power of two.
/// Bound: tools and searches.
const OBSERVE_ALL_MAX: u32 = 16;

/// The result type (shape) of one tool, as observed in its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolShape {
    /// The fingerprint of the tool's definition at the time of observation. If the definition changes, the
    /// shape is no longer valid.
    definition: String,
    /// The number of observed results.
    pub results: u32,
    shape: Shape,
}

impl ToolShape {
    /// Whether files and people see no difference.
    fn shows_same(&self, other: &Self) -> bool {
        self.definition == other.definition && self.shape.confirmed() == other.shape.confirmed()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    tools: BTreeMap<ToolName, ToolShape>,
}

/// The result types (shapes) of an upstream server's tools, as observed in their results.
#[derive(Debug, Default)]
pub struct ResultShapes {
    path: Option<PathBuf>,
    is_enabled: bool,
    /// The file as an item that all hosts of a cluster share.
    shared: Option<SharedItem>,
    state: Mutex<StoreState>,
    /// Whether a result is being parsed. Results that arrive in the meantime are not observed, which limits the CPU
    /// time.
    busy: AtomicBool,
}

#[derive(Debug, Default)]
struct StoreState {
    /// The version of the file with these shapes. `None` if nothing was read yet.
    read: Option<Option<FileVersion>>,
    tools: BTreeMap<ToolName, ToolShape>,
    /// For each tool without an output schema, the number of its calls in this process, except calls with too large
    /// arguments. Which results are observed depends on this number: see [`OBSERVE_ALL_MAX`].
    counts: BTreeMap<ToolName, u32>,
}

/// A tool call whose result will be observed in order to infer the result type of the tool. It is created before the
/// result arrives.
#[derive(Debug)]
pub struct ShapeObservation {
    shapes: Arc<ResultShapes>,
    tool: ToolName,
    definition: String,
    arguments: Vec<u8>,
}

impl ResultShapes {
    /// Creates a store of observed result types (shapes) that is saved in the file `path`; `None` keeps them
    /// in memory only. If `is_enabled` is false, no results are observed and no shapes are returned.
    /// `shared` is the file as an item that all hosts of a cluster share.
    pub fn new(path: Option<PathBuf>, is_enabled: bool, shared: Option<SharedItem>) -> Self {
        Self { path, is_enabled, shared, ..Self::default() }
    }

    /// Starts the observation of a tool call, whose `arguments` are JSON text. Returns `None` if the call is not
    /// observed, for example because the tool has an output schema.
    pub fn observe(self: &Arc<Self>, tool: &Tool, arguments: &[u8]) -> Option<ShapeObservation> {
        if !self.is_enabled || tool.declares_values || arguments.len() > ARGUMENTS_BYTES_MAX {
            return None;
        }
        let mut state = self.state.lock();
        if !state.counts.contains_key(&tool.name) && state.counts.len() >= TOOLS_MAX {
            return None;
        }
        let count = state.counts.entry(tool.name.clone()).or_default();
        *count = count.saturating_add(1);
        (*count <= OBSERVE_ALL_MAX || count.is_power_of_two()).then(|| ShapeObservation {
            shapes: self.clone(),
            tool: tool.name.clone(),
            definition: tool.fingerprint.clone(),
            arguments: arguments.to_vec(),
        })
    }

    /// Returns the observed result type of a tool as a JSON Schema. Returns `None` if no result type was
    /// observed, observation is disabled, the tool's definition has changed since the observation, or the
    /// tool has an output schema.
    pub fn observed_schema(&self, tool: &Tool) -> Option<Value> {
        if !self.is_enabled || tool.declares_values {
            return None;
        }
        let state = self.lock_loaded();
        let tool_shape =
            state.tools.get(&tool.name).filter(|tool_shape| tool_shape.definition == tool.fingerprint)?;
        let shape = tool_shape.shape.confirmed();
        (!shape.is_empty()).then(|| shape.schema())
    }

    /// Returns the number of results of the tool that were observed.
    pub fn result_count(&self, tool: &Tool) -> u32 {
        self.lock_loaded().tools.get(&tool.name).map_or(0, |tool_shape| tool_shape.results)
    }

    /// Deletes the observed result type (shape) of the tool `only`, or those of all tools if `only` is
    /// `None`. Returns the number of deleted shapes.
    pub fn forget(&self, only: Option<&ToolName>) -> std::io::Result<usize> {
        let mut state = self.lock_loaded();
        let before = state.tools.len();
        state.tools.retain(|name, _| only.is_some_and(|only| only != name));
        let forgotten = before - state.tools.len();
        if let (true, Some(path)) = (forgotten > 0, &self.path) {
            files::replace(path, &encode(&state.tools)?)?;
            state.read = Some(FileVersion::of(path));
        }
        Ok(forgotten)
    }

    /// Reads the file again if another process or host has replaced it.
    fn lock_loaded(&self) -> MutexGuard<'_, StoreState> {
        let mut state = self.state.lock();
        let version = self.path.as_deref().and_then(FileVersion::of);
        if state.read != Some(version) {
            state.read = Some(version);
            let before = std::mem::replace(&mut state.tools, self.read_file());
            for (name, of_this_process) in before {
                if let Some(known) = state.tools.get_mut(&name)
                    && known.definition == of_this_process.definition
                {
                    // Fields that were seen once are in no file.
                    known.shape.unite(of_this_process.shape);
                }
            }
        }
        state
    }

    /// Waits until no other host changes these shapes, and until the file has the newest ones. `None` if no others share them.
    fn lock_in_cluster(&self) -> Result<Option<ItemLock>, Unavailable> {
        match &self.shared {
            Some(shared) => Handle::current().block_on(shared.lock()),
            None => Ok(None),
        }
    }

    /// Reads the file with observed shapes. Returns no shapes if the file does not exist or is invalid.
    fn read_file(&self) -> BTreeMap<ToolName, ToolShape> {
        let Some(path) = &self.path else { return BTreeMap::new() };
        let text = files::read_bounded(path, FILE_BYTES_MAX as u64).ok().flatten().unwrap_or_default();
        let record: Option<Record> = serde_json::from_str(&text).ok();
        let mut tools =
            record.filter(|record| record.version == VERSION).map(|record| record.tools).unwrap_or_default();
        tools.retain(|_, tool_shape| tool_shape.shape.is_valid());
        tools
    }

    /// Writes the file with observed shapes. Keeps the shapes of tools that only other processes have observed. If two
    /// processes write the shape of the same tool, the last one overwrites the other.
    fn save(&self, state: &mut StoreState) {
        let Some(path) = &self.path else { return };
        for (tool, tool_shape) in self.read_file() {
            if state.tools.len() < TOOLS_MAX {
                state.tools.entry(tool).or_insert(tool_shape);
            }
        }
        let written = encode(&state.tools).and_then(|record| match record.len() <= FILE_BYTES_MAX {
            true => files::replace(path, &record),
            false => Err(std::io::ErrorKind::FileTooLarge.into()),
        });
        state.read = Some(FileVersion::of(path));
        if let Err(error) = written {
            tracing::debug!("cannot save the observed result types in {}: {error}", path.display());
        }
    }
}

impl ShapeObservation {
    /// Parses the call's result `reply` on another thread, so that the call is not delayed, and adds the shape of the
    /// result to the store. Does nothing if the result is too large, or if another result is being parsed.
    pub fn record(self, reply: &[u8]) {
        if reply.len() > RESULT_BYTES_MAX || self.shapes.busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let reply = reply.to_vec();
        tokio::task::spawn_blocking(move || {
            let shapes = self.shapes.clone();
            self.record_now(&reply);
            shapes.busy.store(false, Ordering::Release);
        });
    }

    pub(super) fn record_now(self, reply: &[u8]) {
        let Some(shape) = parse_shape(reply, &self.arguments) else { return };
        {
            let mut state = self.shapes.lock_loaded();
            let known = state.tools.get(&self.tool);
            if known.is_none() && state.tools.len() >= TOOLS_MAX {
                return;
            }
            let with_this = self.added_to(known, shape.clone());
            if known.is_some_and(|known| known.shows_same(&with_this)) {
                state.tools.insert(self.tool, with_this);
                return;
            }
        }
        let of_cluster = match self.shapes.lock_in_cluster() {
            Ok(lock) => lock,
            Err(error) => return tracing::debug!("a result type is not learned now: {error}"),
        };
        let mut state = self.shapes.lock_loaded();
        let with_this = self.added_to(state.tools.get(&self.tool), shape);
        state.tools.insert(self.tool, with_this);
        self.shapes.save(&mut state);
        drop(state);
        if let Some(lock) = of_cluster
            && let Err(error) = Handle::current().block_on(lock.finish())
        {
            tracing::debug!("the other hosts do not know a result type yet: {error}");
        }
    }

    /// Returns what is known of the tool with one more result.
    fn added_to(&self, known: Option<&ToolShape>, shape: Shape) -> ToolShape {
        match known.filter(|known| known.definition == self.definition) {
            Some(known) => {
                let mut sum = known.clone();
                sum.results = sum.results.saturating_add(1);
                sum.shape.merge(shape);
                sum
            }
            None => ToolShape { definition: self.definition.clone(), results: 1, shape },
        }
    }
}

/// The JSON object in which the supervisor sends the result of a tool call to a worker process.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    structured: Option<&'a RawValue>,
    text: Option<String>,
    content: Option<Vec<ContentBlock>>,
    /// Whether the worker decodes text that is JSON before the program receives it.
    #[serde(default)]
    decode: bool,
    /// Whether a result that is a single text becomes a list with one item.
    #[serde(default)]
    list: bool,
}

/// Deserializes a member that is present in a JSON object. Unlike serde's default, a member that is
/// `null` yields `Some`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct ContentBlock {
    text: Option<String>,
}

/// Returns the shape of the value that a program receives as the result `reply` of a call. An object with a key that
/// equals a string in the call's `arguments` or in the result counts as a map. Returns `None` if the result is invalid,
/// or has parts that are neither structured content nor text.
pub(super) fn parse_shape(reply: &[u8], arguments: &[u8]) -> Option<Shape> {
    let envelope: Envelope<'_> = serde_json::from_slice(reply).ok()?;
    let sample = |text: &String| match envelope.decode {
        true => Sample::of_text(text),
        false => Sample::Text(None),
    };
    let sample = match (envelope.structured, envelope.text, envelope.content) {
        (Some(structured), ..) => Sample::parse(structured.get().as_bytes())?,
        (None, Some(text), _) if envelope.list => Sample::List(vec![sample(&text)]),
        (None, Some(text), _) => sample(&text),
        (None, None, Some(blocks)) if !blocks.is_empty() => {
            let texts: Option<Vec<String>> =
                blocks.into_iter().take(ELEMENTS_MAX).map(|block| block.text).collect();
            Sample::List(texts?.iter().map(sample).collect())
        }
        (None, None, _) => return None,
    };
    let mut values = HashSet::new();
    strings(&sample, &mut values);
    if let Some(arguments) = Sample::parse(arguments) {
        strings(&arguments, &mut values);
    }
    Some(Shape::from_sample(&sample, &values))
}

/// Encodes observed result types (shapes) for the file. Only fields that at least two observed objects
/// had are written, because a key of only one object may be personal data.
fn encode(tools: &BTreeMap<ToolName, ToolShape>) -> std::io::Result<Vec<u8>> {
    let confirmed =
        |tool_shape: &ToolShape| ToolShape { shape: tool_shape.shape.confirmed(), ..tool_shape.clone() };
    let tools = tools.iter().map(|(name, tool_shape)| (name.clone(), confirmed(tool_shape))).collect();
    Ok(serde_json::to_vec(&Record { version: VERSION, tools })?)
}
