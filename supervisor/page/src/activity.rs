//! What runs do and did: the runs that Lockhouse processes report, and the history in the audit log.

mod audit_query;
mod denials;
mod history;
mod latency;
mod log_reader;
mod published;
mod run_details;
mod run_record;
mod savings;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_audit::reader::ReadError;
use lockhouse_base::representable_time::representable;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::{ActionError, ErrorCode};
use super::sections::Sections;
use history::History;
use log_reader::{LogReader, NewRecords};

pub(super) use audit_query::AuditQuery;
pub use published::{ActiveRun, ServerStates};

/// Interval at which new records of the audit log are read while a page is open.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of searches of the audit log at one time.
const SEARCHES_MAX: usize = 2;
/// Maximum time that a search waits for others.
const SEARCH_WAIT: Duration = Duration::from_secs(10);

/// What runs do and did. Clones share the data.
#[derive(Clone)]
pub struct Activity(Arc<ActivityInner>);

struct ActivityInner {
    /// The directory of the audit log; `None` if it is not known.
    directory: Option<PathBuf>,
    state: Mutex<State>,
    searches: Semaphore,
}

#[derive(Default)]
struct State {
    history: History,
    /// The runs that Lockhouse processes report now.
    active: Vec<ActiveRun>,
    servers: BTreeMap<String, Vec<Value>>,
    /// The total size of the known tool definitions of all upstream servers, in bytes.
    definitions_bytes: Option<u64>,
    /// Why the audit log could not be read. `None` if it could be read.
    error: Option<String>,
    /// Whether the sections do not show the current data.
    is_dirty: bool,
}

impl Activity {
    #[must_use]
    pub fn new(directory: Result<PathBuf, impl Display>) -> Self {
        let error = directory.as_ref().err().map(ToString::to_string);
        let directory = directory.ok();
        let state = State { error, is_dirty: true, ..State::default() };
        Self(Arc::new(ActivityInner {
            directory,
            state: state.into(),
            searches: Semaphore::new(SEARCHES_MAX),
        }))
    }

    /// Returns why the audit log cannot be read; `None` if it can.
    pub(super) fn error(&self) -> Option<String> {
        self.0.state.lock().error.clone()
    }

    /// Replaces the runs that Lockhouse processes report now.
    pub fn set_active_runs(&self, active: Vec<ActiveRun>, sections: &Sections) {
        self.change(sections, |state| {
            let is_other = state.active != active;
            state.active = active;
            is_other
        });
    }

    /// Replaces the states of the upstream servers.
    pub fn set_server_states(&self, states: ServerStates, sections: &Sections) {
        self.change(sections, |state| {
            let is_other =
                state.servers != states.by_name || state.definitions_bytes != states.definitions_bytes;
            (state.servers, state.definitions_bytes) = (states.by_name, states.definitions_bytes);
            is_other
        });
    }

    fn change(&self, sections: &Sections, change: impl FnOnce(&mut State) -> bool) {
        let mut state = self.0.state.lock();
        state.is_dirty |= change(&mut state);
        if std::mem::take(&mut state.is_dirty) {
            state.publish(sections);
        }
    }

    /// Reads new records of the audit log while a page is open, and keeps the sections up to date. Never returns.
    pub async fn follow_audit_log(&self, sections: &Sections) {
        self.change(sections, |_| true);
        let Some(directory) = self.0.directory.clone() else { return std::future::pending().await };
        let mut open_pages = sections.open_pages();
        let mut reader = LogReader::new(directory);
        loop {
            if open_pages.wait_for(|count| *count > 0).await.is_err() {
                return;
            }
            let reading = move || {
                let read = reader.read_new();
                (reader, read)
            };
            let Ok((returned, read)) = tokio::task::spawn_blocking(reading).await else { return };
            reader = returned;
            let has_more = matches!(&read, Ok(new) if new.has_more);
            self.change(sections, |state| state.add(read));
            if !has_more {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    fn directory(&self) -> Result<&Path, ActionError> {
        self.0.directory.as_deref().ok_or_else(|| {
            let reason = self.error().unwrap_or_default();
            ActionError::new(ErrorCode::Failed, format!("there is no audit log: {reason}"))
        })
    }

    /// Waits until the audit log may be searched.
    async fn search_permit(&self) -> Result<SemaphorePermit<'_>, ActionError> {
        let permit = tokio::time::timeout(SEARCH_WAIT, self.0.searches.acquire()).await;
        let too_many =
            || ActionError::new(ErrorCode::TooMany, "other searches of the audit log take long: try again");
        permit.ok().and_then(Result::ok).ok_or_else(too_many)
    }
}

impl State {
    /// Adds the new records. Returns whether the data has changed.
    fn add(&mut self, read: Result<NewRecords, ReadError>) -> bool {
        let new = match read {
            Ok(new) => new,
            Err(error) => {
                let error = error.to_string();
                let is_other = self.error.as_ref() != Some(&error);
                self.error = Some(error);
                return is_other;
            }
        };
        let is_other = self.error.take().is_some() || !new.records.is_empty();
        for record in new.records {
            self.history.add(record);
        }
        is_other
    }
}

/// Formats a time as RFC 3339 with milliseconds, in UTC.
pub(super) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(representable(time)).to_string()
}

/// Returns the error of a task on a blocking thread that did not finish.
fn interrupted(error: &tokio::task::JoinError) -> ActionError {
    ActionError::new(ErrorCode::Failed, format!("the search did not finish: {error}"))
}
