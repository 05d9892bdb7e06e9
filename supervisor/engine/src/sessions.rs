//! Sessions of AI clients: workers that keep their variables between runs. Each session belongs to one AI client.
//!
//! A session has a name, one language and one worker, and its runs execute one after another. When a session ends for
//! any reason other than a request of its owner, the next run under its name fails once with that reason, because the
//! code may rely on variables that are lost.

mod registry;
mod session_lease;
mod session_name;

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::{Owner, SessionListing};
use lockhouse_protocol::Language;
use tokio::sync::Notify;
use tokio::time::Instant;

use registry::Registry;
pub use session_lease::SessionLease;
pub use session_name::{InvalidSessionName, SessionKey, SessionName};

use crate::execution::SessionWorker;

/// Maximum number of runs that wait for one session. Further runs are refused.
/// Bound: workers and programs.
const WAITING_MAX: usize = 16;

/// The limits on sessions, from the configuration table `[sessions]`.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// Maximum number of open sessions of all AI clients together.
    pub max: usize,
    /// Maximum number of open sessions of one AI client.
    pub per_client: usize,
    /// Time after which a session ends if no run executes in it.
    pub idle_timeout: Duration,
    /// Maximum age of a session. An older session ends as soon as no run executes in it.
    pub max_age: Duration,
}

/// Why a run cannot use a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error(
        "the session {name:?} has ended: {why}. Its variables are lost; run again to start a new session with this name"
    )]
    Ended { name: String, why: String },
    #[error(
        "the session {name:?} runs {language}, and a session has one language; use another session name for {requested}"
    )]
    WrongLanguage { name: String, language: &'static str, requested: &'static str },
    #[error("{WAITING_MAX} runs already wait for the session {0:?}; wait for their answers first")]
    Busy(String),
    #[error(
        "{max} sessions are open, the maximum: {open}. Continue in one of them, run without a session, or have one ended with `lockhouse sessions end NAME`"
    )]
    TooMany { max: usize, open: String },
    #[error(
        "this client has {max} open sessions, the maximum: {open}. Continue in one of them, or run without a session"
    )]
    ClientLimit { max: usize, open: String },
    #[error("the supervisor is shutting down")]
    Closed,
}

/// Selects the sessions to end.
#[derive(Clone, Copy, Debug)]
pub enum SessionSelector<'a> {
    All,
    /// The session with this name. If several AI clients have a session with this name, no session ends.
    Named(&'a str),
    /// The session whose [`SessionListing::id`] is this number.
    Numbered(u64),
    /// All sessions of this AI client.
    OwnedBy(Owner),
}

/// The registry of all sessions of this process. Clones share one registry.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<SessionsInner>);

#[derive(Debug)]
struct SessionsInner {
    /// The registry of open sessions. The lock is held for single operations only, never across an await.
    state: Mutex<Registry<SessionWorker>>,
    /// Wakes the task that ends expired sessions.
    changed: Notify,
}

impl Sessions {
    /// Creates a registry without sessions, and starts the task that ends expired sessions. The task runs as long as
    /// the process.
    pub fn new(settings: SessionSettings) -> Self {
        let shared = SessionsInner { state: Mutex::new(Registry::new(settings)), changed: Notify::new() };
        let sessions = Self(Arc::new(shared));
        tokio::spawn(sessions.clone().run_expiry());
        sessions
    }

    /// Acquires the session with this key for one run, and waits while other runs use the session. Starts a session if
    /// there is none with this key. `owner` describes the session's owner for operators.
    pub async fn acquire(
        &self,
        key: &SessionKey,
        language: Language,
        owner: &str,
    ) -> Result<SessionLease, SessionError> {
        let next = self.live_state().acquire(key, language, owner, Instant::now())?;
        SessionLease::next(self, key, next).await
    }

    /// Lists the sessions of all owners, ordered by the time of their start.
    pub fn list(&self) -> Vec<SessionListing> {
        self.live_state().list(Instant::now())
    }

    /// Ends the selected sessions and stops their active runs. Returns the names of the ended sessions. `why` is the
    /// reason that the runs get which wait for these sessions or next use their names.
    ///
    /// # Errors
    /// Returns the number of sessions with the selected name if there is more than one. In this case, no session ends.
    pub fn end(&self, which: SessionSelector<'_>, why: &str) -> Result<Vec<String>, usize> {
        self.0.state.lock().end(which, why)
    }

    /// Ends all sessions of an owner that cannot use them any more.
    pub(crate) fn forget(&self, owner: Owner) {
        self.0.state.lock().forget(owner);
    }

    /// Ends all sessions and refuses to start new ones.
    pub fn close(&self) {
        self.0.state.lock().close();
    }

    /// The expiry task: ends each session when it has been unused for too long or has reached its maximum age.
    async fn run_expiry(self) {
        loop {
            let changed = self.0.changed.notified();
            let next = self.0.state.lock().end_expired(Instant::now());
            match next {
                Some(next) => tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Wakes the expiry task, because a session may now expire earlier than the task expects.
    fn wake_expiry_task(&self) {
        self.0.changed.notify_one();
    }

    /// Ends the idle sessions whose worker was killed, and returns the locked registry.
    fn live_state(&self) -> MutexGuard<'_, Registry<SessionWorker>> {
        let mut state = self.0.state.lock();
        state.end_killed(SessionWorker::is_alive);
        state
    }
}
