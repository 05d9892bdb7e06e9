//! The shapes of one server's results: in memory, and in a file that may be deleted at any time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_base::files;
use lockhouse_protocol::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Tool;
use super::sample::{Sample, strings};
use super::shape::Shape;

/// The format of the file. One of another version is not read.
const VERSION: u32 = 1;
const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Tools of one server that have a shape.
const TOOLS_MAX: usize = 500;
/// A larger result is not learned from, nor are larger arguments.
const RESULT_BYTES_MAX: usize = 1024 * 1024;
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// Results of a tool that are all looked at; of later ones those whose number is a power of two.
const ALL_UP_TO: u32 = 16;

/// What is known of one tool's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Learned {
    /// The fingerprint of the definition that it had: another one may answer otherwise.
    definition: String,
    /// How many were looked at.
    pub results: u32,
    shape: Shape,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    tools: BTreeMap<ToolName, Learned>,
}

/// What one server's results look like.
#[derive(Debug, Default)]
pub struct Shapes {
    path: Option<PathBuf>,
    learns: bool,
    known: Mutex<Known>,
    /// Whether a result is being looked at: one at a time is enough, and bounds what that takes.
    busy: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    is_loaded: bool,
    tools: BTreeMap<ToolName, Learned>,
    /// Results that there were, of this process.
    counts: BTreeMap<ToolName, u32>,
}

/// A call whose result is to be learned from.
#[derive(Debug)]
pub struct Lesson {
    shapes: Arc<Shapes>,
    tool: ToolName,
    definition: String,
    arguments: Vec<u8>,
}

impl Shapes {
    /// Without a path they are of this process alone.
    pub fn at(path: Option<PathBuf>, learns: bool) -> Self {
        Self { path, learns, ..Self::default() }
    }

    /// A lesson, if the result of this call is wanted: of tools that say themselves what they answer none is.
    pub fn lesson(self: &Arc<Self>, tool: &Tool, arguments: &[u8]) -> Option<Lesson> {
        if !self.learns || tool.declares_output || arguments.len() > ARGUMENTS_BYTES_MAX {
            return None;
        }
        let mut known = self.lock();
        if !known.counts.contains_key(&tool.name) && known.counts.len() >= TOOLS_MAX {
            return None;
        }
        let count = known.counts.entry(tool.name.clone()).or_default();
        *count = count.saturating_add(1);
        (*count <= ALL_UP_TO || count.is_power_of_two()).then(|| Lesson {
            shapes: self.clone(),
            tool: tool.name.clone(),
            definition: tool.fingerprint.clone(),
            arguments: arguments.to_vec(),
        })
    }

    /// The type of the tool's results, as a JSON Schema, if it was seen and is still the same tool.
    pub fn observed(&self, tool: &Tool) -> Option<Value> {
        if !self.learns || tool.declares_output {
            return None;
        }
        let known = self.loaded();
        let learned = known.tools.get(&tool.name).filter(|learned| learned.definition == tool.fingerprint)?;
        let shape = learned.shape.witnessed();
        (!shape.is_empty()).then(|| shape.schema())
    }

    /// How many results that rests on.
    pub fn results(&self, tool: &Tool) -> u32 {
        self.loaded().tools.get(&tool.name).map_or(0, |learned| learned.results)
    }

    /// Forgets one tool, or all: how many.
    pub fn forget(&self, only: Option<&ToolName>) -> std::io::Result<usize> {
        let mut known = self.loaded();
        let before = known.tools.len();
        known.tools.retain(|name, _| only.is_some_and(|only| only != name));
        let forgotten = before - known.tools.len();
        if let (true, Some(path)) = (forgotten > 0, &self.path) {
            files::replace(path, &record(&known.tools)?)?;
        }
        Ok(forgotten)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    fn loaded(&self) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        if !known.is_loaded {
            known.is_loaded = true;
            known.tools = self.saved();
        }
        known
    }

    /// What the file says, as far as it can be one of ours.
    fn saved(&self) -> BTreeMap<ToolName, Learned> {
        let Some(path) = &self.path else { return BTreeMap::new() };
        let text = files::read_bounded(path, FILE_BYTES_MAX as u64).ok().flatten().unwrap_or_default();
        let record: Option<Record> = serde_json::from_str(&text).ok();
        let mut tools =
            record.filter(|record| record.version == VERSION).map(|record| record.tools).unwrap_or_default();
        tools.retain(|_, learned| learned.shape.is_sound());
        tools
    }

    /// Several processes may do so: each takes in the tools that others have written, and of one tool the last one wins.
    fn save(&self, known: &mut Known) {
        let Some(path) = &self.path else { return };
        for (tool, learned) in self.saved() {
            if known.tools.len() < TOOLS_MAX {
                known.tools.entry(tool).or_insert(learned);
            }
        }
        let written = record(&known.tools).and_then(|record| match record.len() <= FILE_BYTES_MAX {
            true => files::replace(path, &record),
            false => Err(std::io::ErrorKind::FileTooLarge.into()),
        });
        if let Err(error) = written {
            tracing::debug!("what results look like cannot be kept in {}: {error}", path.display());
        }
    }
}

impl Lesson {
    /// Learns from what the engine got, away from the calls. The result was handed over before.
    pub fn learn(self, reply: &[u8]) {
        if reply.len() > RESULT_BYTES_MAX || self.shapes.busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let reply = reply.to_vec();
        tokio::task::spawn_blocking(move || {
            let shapes = self.shapes.clone();
            self.learn_now(&reply);
            shapes.busy.store(false, Ordering::Release);
        });
    }

    pub(super) fn learn_now(self, reply: &[u8]) {
        let Some(shape) = shape_of(reply, &self.arguments) else { return };
        let mut known = self.shapes.loaded();
        let told = |known: &Known| {
            let learned = known.tools.get(&self.tool)?;
            Some((learned.definition.clone(), learned.shape.witnessed()))
        };
        let before = told(&known);
        let is_full = known.tools.len() >= TOOLS_MAX;
        match known.tools.get_mut(&self.tool) {
            Some(learned) if learned.definition == self.definition => {
                learned.results = learned.results.saturating_add(1);
                learned.shape.merge(shape);
            }
            None if is_full => return,
            _ => {
                let learned = Learned { definition: self.definition.clone(), results: 1, shape };
                known.tools.insert(self.tool.clone(), learned);
            }
        }
        if before != told(&known) {
            self.shapes.save(&mut known);
        }
    }
}

/// What an envelope has in it, if that can be told: structured content, or a text.
pub(super) fn shape_of(reply: &[u8], arguments: &[u8]) -> Option<Shape> {
    let Sample::Object(mut members, _) = Sample::of(reply)? else { return None };
    match members.pop()? {
        (kind, Sample::Text(_)) if &*kind == "text" => Some(Shape::text()),
        (kind, structured) if &*kind == "structured" => {
            let mut values = HashSet::new();
            strings(&structured, &mut values);
            if let Some(arguments) = Sample::of(arguments) {
                strings(&arguments, &mut values);
            }
            Some(Shape::of(&structured, &values))
        }
        _ => None,
    }
}

/// Only what enough results have shown is written down.
fn record(tools: &BTreeMap<ToolName, Learned>) -> std::io::Result<Vec<u8>> {
    let witnessed = |learned: &Learned| Learned { shape: learned.shape.witnessed(), ..learned.clone() };
    let tools = tools.iter().map(|(name, learned)| (name.clone(), witnessed(learned))).collect();
    Ok(serde_json::to_vec(&Record { version: VERSION, tools })?)
}
