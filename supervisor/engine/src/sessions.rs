//! Sessions: workers that are kept between runs with all that their code has made, each for the one AI client that began it.
//!
//! A session has one name of its owner's, one language and one worker, which never serves anything else. Its runs take
//! turns. One that ends by anything but its owner's word says so to the next run under its name, once: code must not go on
//! with variables that are gone.

mod name;
mod state;
mod turn;

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::language::Language;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use name::{InvalidSessionName, SessionKey, SessionName};
use state::State;
pub use turn::Turn;

use crate::execution::Held;

/// Runs of one session that wait for their turn.
const WAITING_MAX: usize = 16;

/// `[sessions]`
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// At one time.
    pub max: usize,
    /// Of one client, where several come in through one door.
    pub of_a_client: usize,
    /// How long one is kept that nobody uses.
    pub idle: Duration,
    /// How old one becomes.
    pub life: Duration,
}

/// Why a run has no turn in a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    #[error(
        "the session {name:?} has ended: {why}. Its variables are gone; run again to begin a new session of this name"
    )]
    Ended { name: String, why: String },
    #[error(
        "the session {name:?} is one of {is}, and a session has one language: use another name for {asked}"
    )]
    OtherLanguage { name: String, is: &'static str, asked: &'static str },
    #[error("{WAITING_MAX} runs wait for the session {0:?} already; wait for their answers first")]
    Busy(String),
    #[error(
        "{max} sessions are open, and there can be no more: {open}. Go on in one of them, run without a session, or have one \
         ended with `lockhouse sessions end NAME`"
    )]
    TooMany { max: usize, open: String },
    #[error(
        "{max} sessions of this client are open, and it can have no more: {open}. Go on in one of them, or run without a session"
    )]
    Share { max: usize, open: String },
    #[error("the supervisor is shutting down")]
    Closed,
}

/// A session as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Of this process's sessions, and of no other before or after it. 0 from a process that does not tell it.
    #[serde(default)]
    pub id: u64,
    pub name: String,
    /// Whose it is: what was proven, or which connection it is, with what its client calls itself.
    #[serde(default)]
    pub owner: String,
    pub language: String,
    /// `idle` or `running`.
    pub state: String,
    pub runs: u32,
    /// Since the last run ended, or the one that is under way began; seconds.
    pub unused_s: u64,
    pub age_s: u64,
}

/// Sessions that are to end.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    All,
    /// The one of this name, if it is one alone.
    Named(&'a str),
    /// The one with this [`Listed::id`].
    Numbered(u64),
}

/// All sessions of this process. Copies are the same ones.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Held for one step at a time, and never while somebody waits.
    state: Mutex<State<Held>>,
    /// Something is to be looked at earlier than was thought.
    changed: Notify,
}

impl Sessions {
    /// None are open. The task that ends those whose time is over runs as long as the process.
    pub fn new(settings: SessionSettings) -> Self {
        let shared = Shared { state: Mutex::new(State::new(settings)), changed: Notify::new() };
        let sessions = Self(Arc::new(shared));
        tokio::spawn(sessions.clone().end_in_time());
        sessions
    }

    /// Waits for a turn in the session of that name, which is begun if there is none. `owner` says in words whose it is.
    pub async fn turn(&self, key: &SessionKey, language: Language, owner: &str) -> Result<Turn, NoTurn> {
        let next = self.living().turn(key, language, owner, Instant::now())?;
        Turn::next(self, key, next).await
    }

    /// Of every owner, in the order in which they began.
    pub fn list(&self) -> Vec<Listed> {
        self.living().list(Instant::now())
    }

    /// Ends these; what runs in them is stopped. Gives their names.
    ///
    /// # Errors
    /// How many sessions have the name, where one is meant.
    pub fn end(&self, which: Which<'_>, why: &str) -> Result<Vec<String>, usize> {
        self.state().end(which, why)
    }

    /// Ends all of them, for good.
    pub fn close(&self) {
        self.state().close();
    }

    /// Ends those that nobody has used for too long, and those that are too old.
    async fn end_in_time(self) {
        loop {
            let changed = self.0.changed.notified();
            let next = self.state().end_the_overdue(Instant::now());
            match next {
                Some(next) => tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// The next end may come earlier than was thought.
    fn look_again(&self) {
        self.0.changed.notify_one();
    }

    /// Without those whose worker somebody killed.
    fn living(&self) -> MutexGuard<'_, State<Held>> {
        let mut state = self.state();
        state.end_the_dead(Held::is_alive);
        state
    }

    fn state(&self) -> MutexGuard<'_, State<Held>> {
        self.0.state.lock()
    }
}
