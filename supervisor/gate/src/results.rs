//! Stores results that were too long for an answer, so that AI clients can fetch the rest. Each result has an
//! unguessable handle, is accessible only to the AI client whose code produced it, and is kept within limits of
//! bytes, number and time.

mod directory;
mod memory;
mod paging;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::principal::Owner;
use lockhouse_protocol::ResultHandle;

use directory::DirectoryStore;
use memory::{MemoryStore, ResultKind};
pub use paging::page;

/// Maximum number of stored results.
const COUNT_MAX: usize = 1_000;
/// Divisor of the byte limit that one result may use (a quarter).
const RESULT_SHARE: u64 = 4;

/// Limits for stored results.
#[derive(Clone, Copy, Debug)]
pub struct ResultLimits {
    /// Maximum number of bytes of all stored results together; 0 disables storing.
    pub bytes: u64,
    pub lifetime: Duration,
}

/// The handle is unknown or its result has expired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no result {handle}: each is kept for {} s or until newer ones need its space, and only for the client whose run made it\
     {}; run the code again",
    lifetime.as_secs(),
    if *is_young { ". This Lockhouse process was started more recently than that; results of an earlier process are gone" } else { "" }
)]
pub struct ResultNotFound {
    handle: ResultHandle,
    lifetime: Duration,
    /// Whether this process is so young that a previous process may have stored the result.
    is_young: bool,
}

/// Stores results of runs that were too long to be shown, until their clients read them.
#[derive(Debug)]
pub struct Results {
    bounds: ResultLimits,
    since: Instant,
    place: Storage,
}

#[derive(Debug)]
enum Storage {
    /// Results are stored in memory, until this process ends.
    Memory(Mutex<MemoryStore>),
    /// Results are stored in files, also for later processes of the same user.
    Directory(DirectoryStore),
}

impl Results {
    pub fn in_memory(bounds: ResultLimits) -> Self {
        Self { bounds, since: Instant::now(), place: Storage::Memory(Mutex::default()) }
    }

    pub fn in_directory(path: PathBuf, bounds: ResultLimits) -> Self {
        Self { bounds, since: Instant::now(), place: Storage::Directory(DirectoryStore::new(path)) }
    }

    /// Stores a result, given as JSON. Returns `None` if it is too large or cannot be written.
    pub fn store(&self, owner: Owner, json: &str) -> Option<ResultHandle> {
        if json.len() as u64 > self.bounds.bytes / RESULT_SHARE {
            return None;
        }
        let handle = new_handle()?;
        match &self.place {
            Storage::Memory(memory) => {
                let mut memory = memory.lock();
                memory.store(
                    owner,
                    handle.clone(),
                    ResultKind::Part,
                    json.into(),
                    &self.bounds,
                    Instant::now(),
                );
            }
            Storage::Directory(directory) => {
                if let Err(error) = directory.store(&handle, json, &self.bounds, SystemTime::now()) {
                    tracing::warn!("a result was not stored: {error}");
                    return None;
                }
            }
        }
        Some(handle)
    }

    /// Returns a complete result as JSON.
    pub fn get(&self, owner: Owner, handle: &ResultHandle) -> Result<Arc<str>, ResultNotFound> {
        let found = match &self.place {
            Storage::Memory(memory) => {
                let mut memory = memory.lock();
                memory.get(owner, handle, ResultKind::Part, &self.bounds, Instant::now())
            }
            Storage::Directory(directory) => directory.get(handle, &self.bounds, SystemTime::now()),
        };
        found.ok_or_else(|| {
            let lifetime = self.bounds.lifetime;
            let is_young = matches!(self.place, Storage::Memory(_)) && self.since.elapsed() < lifetime;
            ResultNotFound { handle: handle.clone(), lifetime, is_young }
        })
    }

    /// Returns the number of stored results and their bytes. Results in files are not counted, since other processes
    /// share them.
    pub fn usage(&self) -> (usize, u64) {
        match &self.place {
            Storage::Memory(memory) => {
                let mut memory = memory.lock();
                memory.usage(&self.bounds, Instant::now())
            }
            Storage::Directory(_) => (0, 0),
        }
    }

    /// Generates a new handle, by which a stored result can be read; `None` if the kernel has no random numbers.
    pub fn generate_handle() -> Option<ResultHandle> {
        new_handle()
    }

    /// Whether answers of background runs can be stored.
    pub fn stores_answers(&self) -> bool {
        self.bounds.bytes > 0 && matches!(self.place, Storage::Memory(_))
    }

    /// Stores the answer of a background run under the handle that its AI client has. Returns `false` if the answer
    /// is too large.
    pub fn store_answer(&self, owner: Owner, handle: &ResultHandle, json: &str) -> bool {
        let Storage::Memory(memory) = &self.place else { return false };
        if json.len() as u64 > self.bounds.bytes / RESULT_SHARE {
            return false;
        }
        let mut memory = memory.lock();
        memory.store(owner, handle.clone(), ResultKind::Answer, json.into(), &self.bounds, Instant::now());
        true
    }

    /// Returns the stored answer of a background run.
    pub fn answer(&self, owner: Owner, handle: &ResultHandle) -> Option<Arc<str>> {
        let Storage::Memory(memory) = &self.place else { return None };
        let mut memory = memory.lock();
        memory.get(owner, handle, ResultKind::Answer, &self.bounds, Instant::now())
    }

    /// Returns how long each result is stored.
    pub fn lifetime(&self) -> Duration {
        self.bounds.lifetime
    }

    /// Removes expired result files. Results in memory expire without this.
    pub fn remove_expired(&self) {
        if let Storage::Directory(directory) = &self.place {
            directory.make_room(0, &self.bounds, SystemTime::now());
        }
    }
}

/// Generates a result handle from 128 random bits; `None` if the kernel has no random numbers.
fn new_handle() -> Option<ResultHandle> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    ResultHandle::new(format!("{:032x}", u128::from_ne_bytes(bits))).ok()
}
