//! Stores results that are too long for an answer, so that AI clients and programs can read the rest by a
//! handle. A handle cannot be guessed, and works only for the AI client whose program produced the result. The
//! number and total size of stored results and the time for which they are stored are limited.

mod copies;
mod directory;
mod memory;
mod paging;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::own_host;
use lockhouse_cluster::ValueCopies;
use lockhouse_messages::{Owner, ResultListing};
use lockhouse_protocol::ResultHandle;

use directory::DirectoryStore;
use memory::{MemoryStore, ResultKind, StoredResult};
pub use paging::page;

/// Maximum number of stored results of all AI clients together.
/// Bound: values and answers.
const COUNT_MAX: usize = 1_000;
/// Divisor of the byte limit of all stored results. The quotient is the maximum size of one result: a quarter of
/// the limit.
const RESULT_SHARE: u64 = 4;

/// The configured limits of stored results.
#[derive(Clone, Copy, Debug)]
pub struct ResultLimits {
    /// Maximum number of bytes of all stored results together; 0 disables storing.
    pub bytes: u64,
    /// How long a result is stored.
    pub lifetime: Duration,
}

/// Returns the words for how long results and files are stored. `ends_with_client` is whether they end with the connection
/// of the AI client.
pub fn storage_time(lifetime: Duration, ends_with_client: bool) -> String {
    let seconds = lifetime.as_secs();
    match ends_with_client {
        true => format!(
            "each is kept until this client disconnects, for at most {seconds} s, or until newer ones need its space"
        ),
        false => format!("each is kept for {seconds} s or until newer ones need its space"),
    }
}

/// The error for a result handle that is unknown to the AI client that uses it, or whose result has expired
/// or was evicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no result {handle}: {}, and only for the client whose run made it{}; run the code again",
    storage_time(*lifetime, *ends_with_client),
    if *is_young { ". This Lockhouse process was started more recently than that; results of an earlier process are gone" } else { "" }
)]
pub struct ResultNotFound {
    handle: ResultHandle,
    lifetime: Duration,
    /// Whether the results of this client end with its connection.
    ends_with_client: bool,
    /// Whether this process has run for less than the lifetime of results. If so, a previous process may have
    /// stored the missing result.
    is_young: bool,
}

/// Returns the entry of a stored result in the list for operators.
fn listing(
    handle: &ResultHandle,
    kind: &str,
    bytes: u64,
    age: Duration,
    bounds: &ResultLimits,
) -> ResultListing {
    let (age_s, expires_s) = (age.as_secs_f64(), bounds.lifetime.saturating_sub(age).as_secs_f64());
    ResultListing { handle: handle.to_string(), kind: kind.to_owned(), bytes, age_s, expires_s }
}

/// The store of results that are too long for an answer, and of the answers of background runs.
#[derive(Debug)]
pub struct Results {
    bounds: ResultLimits,
    /// When the store was created.
    since: Instant,
    place: Storage,
    /// Empty unless the hosts of a cluster copy their results.
    copies: OnceLock<ValueCopies>,
}

/// Where results are stored.
#[derive(Debug)]
enum Storage {
    /// In memory, until this process ends.
    Memory(Mutex<MemoryStore>),
    /// In files, which later processes of the same Unix user can read too.
    Directory(DirectoryStore),
}

impl Results {
    pub fn in_memory(bounds: ResultLimits) -> Self {
        Self::at(Storage::Memory(Mutex::default()), bounds)
    }

    pub fn in_directory(path: PathBuf, bounds: ResultLimits) -> Self {
        Self::at(Storage::Directory(DirectoryStore::new(path)), bounds)
    }

    fn at(place: Storage, bounds: ResultLimits) -> Self {
        Self { bounds, since: Instant::now(), place, copies: OnceLock::new() }
    }

    /// Stores a result, given as JSON, and returns its handle. Returns `None` if the result is larger than a quarter
    /// of the byte limit, if it cannot be written, or if the kernel provides no random numbers for a handle.
    pub fn store(&self, owner: Owner, json: &str) -> Option<ResultHandle> {
        if json.len() as u64 > self.bounds.bytes / RESULT_SHARE {
            return None;
        }
        let handle = new_handle()?;
        match &self.place {
            Storage::Memory(memory) => {
                self.store_in_memory(memory, owner, &handle, ResultKind::Part, json.into());
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

    /// Returns a whole stored result as JSON. Fails if the owner has no result with this handle, or it has expired.
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
            let ends_with_client = owner.is_connection();
            ResultNotFound { handle: handle.clone(), lifetime, ends_with_client, is_young }
        })
    }

    /// Returns the handles of the results in files that have not expired and whose handles start with `prefix`. Results
    /// in memory are never listed: they belong to AI clients, for which handles must not be guessable.
    pub fn handles_in_files(&self, prefix: &str) -> Vec<ResultHandle> {
        match &self.place {
            Storage::Memory(_) => Vec::new(),
            Storage::Directory(directory) => directory.handles(prefix, &self.bounds, SystemTime::now()),
        }
    }

    /// Lists all stored results, for an operator.
    pub fn list(&self) -> Vec<ResultListing> {
        match &self.place {
            Storage::Memory(memory) => memory.lock().list(&self.bounds, Instant::now()),
            Storage::Directory(directory) => directory.list(&self.bounds, SystemTime::now()),
        }
    }

    /// Returns a stored result of any AI client as JSON, for an operator. `None` if there is none, or it has expired.
    pub fn get_for_operator(&self, handle: &ResultHandle) -> Option<Arc<str>> {
        match &self.place {
            Storage::Memory(memory) => memory.lock().get_of_any_owner(handle, &self.bounds, Instant::now()),
            Storage::Directory(directory) => directory.get(handle, &self.bounds, SystemTime::now()),
        }
    }

    /// Returns the number of stored results and the sum of their bytes. Returns zeros if results are stored in files,
    /// since other processes share the files.
    pub fn usage(&self) -> (usize, u64) {
        match &self.place {
            Storage::Memory(memory) => {
                let mut memory = memory.lock();
                memory.usage(&self.bounds, Instant::now())
            }
            Storage::Directory(_) => (0, 0),
        }
    }

    /// Generates a new handle for a stored result. `None` if the kernel provides no random numbers.
    pub fn generate_handle() -> Option<ResultHandle> {
        new_handle()
    }

    /// Whether the answers of background runs can be stored. This is the case if results are stored in memory and
    /// the byte limit is not 0.
    pub fn stores_answers(&self) -> bool {
        self.bounds.bytes > 0 && matches!(self.place, Storage::Memory(_))
    }

    /// Stores the answer of a background run under the handle that its AI client already has. Returns `false` if
    /// the answer is larger than a quarter of the byte limit, or if answers cannot be stored.
    pub fn store_answer(&self, owner: Owner, handle: &ResultHandle, json: &str) -> bool {
        let Storage::Memory(memory) = &self.place else { return false };
        if json.len() as u64 > self.bounds.bytes / RESULT_SHARE {
            return false;
        }
        self.store_in_memory(memory, owner, handle, ResultKind::Answer, json.into());
        true
    }

    fn store_in_memory(
        &self,
        memory: &Mutex<MemoryStore>,
        owner: Owner,
        handle: &ResultHandle,
        kind: ResultKind,
        json: Arc<str>,
    ) {
        let now = Instant::now();
        let result = StoredResult { owner, handle: handle.clone(), kind, json: json.clone(), since: now };
        memory.lock().store(result, &self.bounds, now);
        self.copy(owner, handle, kind, json);
    }

    /// Returns the stored answer of a background run as JSON. `None` if this owner has no answer with this handle,
    /// or it has expired or was evicted.
    pub fn answer(&self, owner: Owner, handle: &ResultHandle) -> Option<Arc<str>> {
        let Storage::Memory(memory) = &self.place else { return None };
        let mut memory = memory.lock();
        memory.get(owner, handle, ResultKind::Answer, &self.bounds, Instant::now())
    }

    /// Deletes the results in memory of an owner that cannot ask for them any more.
    pub fn forget(&self, owner: Owner) {
        if let Storage::Memory(memory) = &self.place {
            memory.lock().forget(owner);
        }
    }

    /// Returns how long each result is stored.
    pub fn lifetime(&self) -> Duration {
        self.bounds.lifetime
    }

    /// Removes result files that have expired, and the oldest ones if the files exceed a limit. Results in memory
    /// need no such call, because each access to the memory store removes expired ones.
    pub fn remove_expired(&self) {
        if let Storage::Directory(directory) = &self.place {
            directory.make_room(None, &self.bounds, SystemTime::now());
        }
    }
}

/// Generates a result handle from 128 random bits; in a cluster, the last 40 are the tag of this host. `None` if the kernel provides no random numbers.
fn new_handle() -> Option<ResultHandle> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    ResultHandle::new(format!("{:032x}", own_host::mark(u128::from_ne_bytes(bits)))).ok()
}
