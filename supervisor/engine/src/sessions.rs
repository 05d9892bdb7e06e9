//! Sessions: workers that are kept between runs with all that their code has made, each for the one AI client that began it.
//!
//! A session has one name of its owner's, one language and one worker, which never serves anything else. Its runs take
//! turns. One that ends by anything but its owner's word says so to the next run under its name, once: code must not go on
//! with variables that are gone.

mod name;
mod turn;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_base::principal::Owner;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use name::{SessionKey, SessionName};
pub use turn::Turn;

use crate::execution::Held;

/// Runs of one session that wait for their turn.
const WAITING_MAX: usize = 16;
/// Ends that nobody has been told of, at one time.
const UNTOLD_MAX: usize = 256;

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
    settings: SessionSettings,
    state: Mutex<State>,
    /// Something is to be looked at earlier than was thought.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<SessionKey, Session>,
    /// Ended, and nobody was told yet.
    untold: VecDeque<(SessionKey, String)>,
    begun: u64,
    closed: bool,
}

#[derive(Debug)]
struct Session {
    /// Tells it from one of the same name before it.
    number: u64,
    /// Its owner, in words.
    owner: String,
    language: Language,
    created: Instant,
    used: Instant,
    runs: u32,
    /// None while a run has it.
    held: Option<Held>,
    waiting: VecDeque<oneshot::Sender<Result<Turn, NoTurn>>>,
    /// Stops the run that is under way, because the session is to end.
    stop: CancellationToken,
    /// Why it ends as soon as its run does.
    to_end: Option<String>,
}

impl Session {
    fn state(&self) -> &'static str {
        if self.held.is_some() { "idle" } else { "running" }
    }
}

impl Sessions {
    /// None are open. The task that ends those whose time is over runs as long as the process.
    pub fn new(settings: SessionSettings) -> Self {
        let shared = Shared { settings, state: Mutex::default(), changed: Notify::new() };
        let sessions = Self(Arc::new(shared));
        tokio::spawn(sessions.clone().end_in_time());
        sessions
    }

    /// Waits for a turn in the session of that name, which is begun if there is none. `owner` says in words whose it is.
    pub async fn turn(&self, key: &SessionKey, language: Language, owner: &str) -> Result<Turn, NoTurn> {
        let turn = {
            let mut state = self.state();
            if state.closed {
                return Err(NoTurn::Closed);
            }
            self.end_the_dead(&mut state);
            if let Some(why) = state.take_untold(key) {
                return Err(NoTurn::Ended { name: key.name.to_string(), why });
            }
            if !state.live.contains_key(key) {
                return self.begin(&mut state, key, language, owner);
            }
            let name = key.name.to_string();
            let Some(session) = state.live.get_mut(key) else { return Err(NoTurn::Closed) };
            if session.language != language {
                let (is, asked) = (session.language.as_str(), language.as_str());
                return Err(NoTurn::OtherLanguage { name, is, asked });
            }
            if let Some(held) = session.held.take() {
                return Ok(session.next(self, key, held));
            }
            session.waiting.retain(|waiting| !waiting.is_closed());
            if session.waiting.len() >= WAITING_MAX {
                return Err(NoTurn::Busy(name));
            }
            let (waiting, turn) = oneshot::channel();
            session.waiting.push_back(waiting);
            turn
        };
        turn.await.unwrap_or(Err(NoTurn::Closed))
    }

    fn begin(
        &self,
        state: &mut State,
        key: &SessionKey,
        language: Language,
        owner: &str,
    ) -> Result<Turn, NoTurn> {
        let SessionSettings { max, of_a_client, .. } = self.0.settings;
        let own = state.live.keys().filter(|other| other.owner == key.owner).count();
        if key.owner.is_limited() && own >= of_a_client {
            return Err(NoTurn::Share { max: of_a_client, open: state.in_words(&key.owner) });
        }
        if state.live.len() >= max {
            return Err(NoTurn::TooMany { max, open: state.in_words(&key.owner) });
        }
        state.begun += 1;
        let now = Instant::now();
        let session = Session {
            number: state.begun,
            owner: owner.to_owned(),
            language,
            created: now,
            used: now,
            runs: 0,
            held: None,
            waiting: VecDeque::new(),
            stop: CancellationToken::new(),
            to_end: None,
        };
        let session = state.live.entry(key.clone()).or_insert(session);
        Ok(session.turn(self, key, None))
    }

    /// Of every owner, in the order in which they began.
    pub fn list(&self) -> Vec<Listed> {
        let mut state = self.state();
        self.end_the_dead(&mut state);
        let listed = |(key, session): (&SessionKey, &Session)| Listed {
            id: session.number,
            owner: session.owner.clone(),
            name: key.name.to_string(),
            language: session.language.as_str().into(),
            state: session.state().into(),
            runs: session.runs,
            unused_s: session.used.elapsed().as_secs(),
            age_s: session.created.elapsed().as_secs(),
        };
        let mut all: Vec<Listed> = state.live.iter().map(listed).collect();
        all.sort_by_key(|session| session.id);
        all
    }

    /// Ends these; what runs in them is stopped. Gives their names.
    ///
    /// # Errors
    /// How many sessions have the name, where one is meant.
    pub fn end(&self, which: Which<'_>, why: &str) -> Result<Vec<String>, usize> {
        let mut state = self.state();
        let is_meant = |(key, session): &(&SessionKey, &Session)| match which {
            Which::All => true,
            Which::Named(name) => key.name.as_str() == name,
            Which::Numbered(number) => session.number == number,
        };
        let keys: Vec<SessionKey> = state.live.iter().filter(is_meant).map(|(key, _)| key.clone()).collect();
        if matches!(which, Which::Named(_)) && keys.len() > 1 {
            return Err(keys.len());
        }
        for key in &keys {
            match state.live.get_mut(key) {
                Some(session) if session.held.is_none() => {
                    session.to_end = Some(why.to_owned());
                    session.stop.cancel();
                }
                _ => state.end(key, why),
            }
        }
        Ok(keys.iter().map(|key| key.name.to_string()).collect())
    }

    /// Ends all of them, for good.
    pub fn close(&self) {
        self.state().closed = true;
        // All of them: there is nothing that could be meant otherwise.
        let _ = self.end(Which::All, "Lockhouse was shut down");
    }

    /// A worker that rests can be killed by anyone who may.
    fn end_the_dead(&self, state: &mut State) {
        let dead = |(key, session): (&SessionKey, &Session)| {
            session.held.as_ref().is_some_and(|held| !held.is_alive()).then(|| key.clone())
        };
        let dead: Vec<SessionKey> = state.live.iter().filter_map(dead).collect();
        dead.iter().for_each(|key| state.end(key, "its worker was killed from outside while it was idle"));
    }

    /// Ends those that nobody has used for too long, and those that are too old.
    async fn end_in_time(self) {
        loop {
            let changed = self.0.changed.notified();
            let next = self.end_those_whose_time_is_over(Instant::now());
            match next {
                Some(next) => tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Gives the time of the next end.
    fn end_those_whose_time_is_over(&self, now: Instant) -> Option<Instant> {
        let SessionSettings { idle, life, .. } = self.0.settings;
        let mut state = self.state();
        let over = |(key, session): (&SessionKey, &Session)| {
            session.held.as_ref()?;
            let why = match () {
                () if session.created + life <= now => too_old(life),
                () if session.used + idle <= now => {
                    format!("nobody had used it for {} s", idle.as_secs_f32())
                }
                () => return None,
            };
            Some((key.clone(), why))
        };
        let over: Vec<(SessionKey, String)> = state.live.iter().filter_map(over).collect();
        over.iter().for_each(|(key, why)| state.end(key, why));
        let resting = state.live.values().filter(|session| session.held.is_some());
        resting.map(|session| (session.used + idle).min(session.created + life)).min()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

fn too_old(life: Duration) -> String {
    format!("it was {} s old, and a session gets no older", life.as_secs_f32())
}

impl State {
    fn take_untold(&mut self, key: &SessionKey) -> Option<String> {
        let at = self.untold.iter().position(|(ended, _)| ended == key)?;
        self.untold.remove(at).map(|(_, why)| why)
    }

    /// Ends a session, and its worker with it. Whoever waits for it is told now, or else whoever asks for it next.
    fn end(&mut self, key: &SessionKey, why: &str) {
        let Some(session) = self.live.remove(key) else { return };
        let mut is_told = false;
        for waiting in session.waiting {
            let ended = NoTurn::Ended { name: key.name.to_string(), why: why.to_owned() };
            is_told |= waiting.send(Err(ended)).is_ok();
        }
        if is_told {
            return;
        }
        self.untold.push_back((key.clone(), why.to_owned()));
        if self.untold.len() > UNTOLD_MAX {
            self.untold.pop_front();
        }
    }

    /// Those of this owner. Of others no more is told than that there are some.
    fn in_words(&self, owner: &Owner) -> String {
        let (own, others): (Vec<_>, Vec<_>) = self.live.iter().partition(|(key, _)| key.owner == *owner);
        let shown = |(key, session): (&SessionKey, &Session)| match session.state() {
            "idle" => format!("{} (idle for {} s)", key.name, session.used.elapsed().as_secs()),
            state => format!("{} ({state})", key.name),
        };
        let mut words: Vec<String> = own.into_iter().map(shown).collect();
        if !others.is_empty() {
            words.push("those of other clients".to_owned());
        }
        words.join(", ")
    }
}
