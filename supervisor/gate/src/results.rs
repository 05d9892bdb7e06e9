//! Results that were too long to be shown: whole, for whoever comes back for the rest. Each is known by a handle that
//! nobody can guess, belongs to the client whose code made it, and is kept within bounds of bytes, number and time.

mod directory;
mod memory;
mod part;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::principal::Owner;
use lockhouse_protocol::ResultHandle;

use directory::Directory;
use memory::{Kind, Memory};
pub use part::part;

/// Results that are kept at one time.
const COUNT_MAX: usize = 1_000;
/// One result may take this part of what all may.
const PARTS: u64 = 4;

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of all results together; 0 keeps none.
    pub bytes: u64,
    pub lifetime: Duration,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no result {handle} is kept here: each is kept for {} s or until newer ones need its room, and for its own client alone\
     {}; run the code again",
    lifetime.as_secs(),
    if *is_young { ". This Lockhouse has run for less time than that, and what one before it kept ended with it" } else { "" }
)]
pub struct NotKept {
    handle: ResultHandle,
    lifetime: Duration,
    /// Whether there may have been another process whose results would be kept by now, had it not ended.
    is_young: bool,
}

/// The results that are kept.
#[derive(Debug)]
pub struct Results {
    bounds: Bounds,
    since: Instant,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// As long as this process.
    Memory(Mutex<Memory>),
    /// For the next process of this user, too.
    Directory(Directory),
}

impl Results {
    pub fn in_memory(bounds: Bounds) -> Self {
        Self { bounds, since: Instant::now(), place: Place::Memory(Mutex::default()) }
    }

    pub fn in_directory(path: PathBuf, bounds: Bounds) -> Self {
        Self { bounds, since: Instant::now(), place: Place::Directory(Directory::new(path)) }
    }

    /// Keeps a result, which is JSON. None where there is no place for it.
    pub fn keep(&self, owner: Owner, json: &str) -> Option<ResultHandle> {
        if json.len() as u64 > self.bounds.bytes / PARTS {
            return None;
        }
        let handle = new_handle()?;
        match &self.place {
            Place::Memory(memory) => {
                let mut memory = memory.lock();
                memory.keep(owner, handle.clone(), Kind::Part, json.into(), &self.bounds, Instant::now());
            }
            Place::Directory(directory) => {
                if let Err(error) = directory.keep(&handle, json, &self.bounds, SystemTime::now()) {
                    tracing::warn!("a result is not kept: {error}");
                    return None;
                }
            }
        }
        Some(handle)
    }

    /// A result, whole, as JSON.
    pub fn get(&self, owner: Owner, handle: &ResultHandle) -> Result<Arc<str>, NotKept> {
        let found = match &self.place {
            Place::Memory(memory) => {
                let mut memory = memory.lock();
                memory.get(owner, handle, Kind::Part, &self.bounds, Instant::now())
            }
            Place::Directory(directory) => directory.get(handle, &self.bounds, SystemTime::now()),
        };
        found.ok_or_else(|| {
            let lifetime = self.bounds.lifetime;
            let is_young = matches!(self.place, Place::Memory(_)) && self.since.elapsed() < lifetime;
            NotKept { handle: handle.clone(), lifetime, is_young }
        })
    }

    /// How many are kept, and their bytes. What is in files may be another process's, and is not counted.
    pub fn count(&self) -> (usize, u64) {
        match &self.place {
            Place::Memory(memory) => {
                let mut memory = memory.lock();
                memory.count(&self.bounds, Instant::now())
            }
            Place::Directory(_) => (0, 0),
        }
    }

    /// A handle that nobody has.
    pub fn handle() -> Option<ResultHandle> {
        new_handle()
    }

    /// Whether answers of runs that nobody waited for can be kept.
    pub fn keeps_answers(&self) -> bool {
        self.bounds.bytes > 0 && matches!(self.place, Place::Memory(_))
    }

    /// Keeps the answer of a run under the handle that its client has, unless it is too large.
    pub fn keep_answer(&self, owner: Owner, handle: &ResultHandle, json: &str) -> bool {
        let Place::Memory(memory) = &self.place else { return false };
        if json.len() as u64 > self.bounds.bytes / PARTS {
            return false;
        }
        let mut memory = memory.lock();
        memory.keep(owner, handle.clone(), Kind::Answer, json.into(), &self.bounds, Instant::now());
        true
    }

    /// The answer of a run, as it was kept.
    pub fn answer(&self, owner: Owner, handle: &ResultHandle) -> Option<Arc<str>> {
        let Place::Memory(memory) = &self.place else { return None };
        let mut memory = memory.lock();
        memory.get(owner, handle, Kind::Answer, &self.bounds, Instant::now())
    }

    /// How long each is kept.
    pub fn lifetime(&self) -> Duration {
        self.bounds.lifetime
    }

    /// Removes what is older than its time, where nothing else does.
    pub fn tidy(&self) {
        if let Place::Directory(directory) = &self.place {
            directory.make_room(0, &self.bounds, SystemTime::now());
        }
    }
}

/// 128 bits of randomness.
fn new_handle() -> Option<ResultHandle> {
    let mut bits = [0; 16];
    aws_lc_rs::rand::fill(&mut bits).ok()?;
    ResultHandle::new(format!("{:032x}", u128::from_ne_bytes(bits))).ok()
}
