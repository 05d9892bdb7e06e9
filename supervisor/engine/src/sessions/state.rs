//! Which sessions there are, whose turn it is in each, and when they end, without I/O: workers are `W`, and the time comes in.

mod session;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_base::principal::Owner;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Listed, NoTurn, SessionKey, SessionSettings, WAITING_MAX, Which};
use session::Session;
pub(super) use session::{Grant, Granted};

/// Ends that nobody has been told of, at one time.
const UNTOLD_MAX: usize = 256;

/// When it is a run's turn.
#[derive(Debug)]
pub(super) enum Next<W> {
    Now(Grant<W>),
    /// After those of other runs.
    Later(oneshot::Receiver<Granted<W>>),
}

#[derive(Debug)]
pub(super) struct State<W> {
    settings: SessionSettings,
    live: BTreeMap<SessionKey, Session<W>>,
    /// Ended, and nobody was told yet.
    untold: VecDeque<(SessionKey, String)>,
    begun: u64,
    closed: bool,
}

impl<W> State<W> {
    pub(super) fn new(settings: SessionSettings) -> Self {
        Self { settings, live: BTreeMap::new(), untold: VecDeque::new(), begun: 0, closed: false }
    }

    /// The next turn in the session of that name, which is begun if there is none.
    pub(super) fn turn(
        &mut self,
        key: &SessionKey,
        language: Language,
        owner: &str,
        now: Instant,
    ) -> Result<Next<W>, NoTurn> {
        if self.closed {
            return Err(NoTurn::Closed);
        }
        let name = || key.name.to_string();
        if let Some(why) = self.take_untold(key) {
            return Err(NoTurn::Ended { name: name(), why });
        }
        let Some(session) = self.live.get_mut(key) else {
            return self.begin(key, language, owner, now).map(Next::Now);
        };
        if session.language != language {
            let (is, asked) = (session.language.as_str(), language.as_str());
            return Err(NoTurn::OtherLanguage { name: name(), is, asked });
        }
        if let Some(worker) = session.worker.take() {
            return Ok(Next::Now(session.grant(Some(worker), now)));
        }
        session.waiting.retain(|waiting| !waiting.is_closed());
        if session.waiting.len() >= WAITING_MAX {
            return Err(NoTurn::Busy(name()));
        }
        let (waiting, turn) = oneshot::channel();
        session.waiting.push_back(waiting);
        Ok(Next::Later(turn))
    }

    fn begin(&mut self, key: &SessionKey, language: Language, owner: &str, now: Instant) -> Granted<W> {
        let SessionSettings { max, of_a_client, .. } = self.settings;
        let own = self.live.keys().filter(|other| other.owner == key.owner).count();
        if key.owner.is_limited() && own >= of_a_client {
            return Err(NoTurn::Share { max: of_a_client, open: self.in_words(&key.owner, now) });
        }
        if self.live.len() >= max {
            return Err(NoTurn::TooMany { max, open: self.in_words(&key.owner, now) });
        }
        self.begun += 1;
        let session = Session::new(self.begun, owner, language, now);
        Ok(self.live.entry(key.clone()).or_insert(session).grant(None, now))
    }

    /// A run is over: its worker is there for the next one, or the session ends, without a worker for the reason `why`. Gives
    /// the reason if it did.
    pub(super) fn give_back(
        &mut self,
        key: &SessionKey,
        number: u64,
        worker: Option<W>,
        why: impl FnOnce() -> String,
        now: Instant,
    ) -> Option<String> {
        let life = self.settings.life;
        let session = self.live.get_mut(key).filter(|session| session.number == number)?;
        let is_old = session.created + life <= now;
        let end = match (session.to_end.take(), worker) {
            (Some(why), _) => why,
            (None, None) => why(),
            (None, Some(_)) if is_old => too_old(life),
            (None, Some(worker)) => {
                session.hand_on(worker, now);
                return None;
            }
        };
        self.end_one(key, &end);
        Some(end)
    }

    /// A session could not begin: there is nothing that anybody would miss, and nobody is told but those who wait.
    pub(super) fn never_began(&mut self, key: &SessionKey, number: u64, why: &str) {
        if self.live.get(key).is_some_and(|session| session.number == number) {
            self.end_one(key, why);
            let _ = self.take_untold(key);
        }
    }

    /// Ends these; what runs in them is stopped. Gives their names.
    ///
    /// # Errors
    /// How many sessions have the name, where one is meant.
    pub(super) fn end(&mut self, which: Which<'_>, why: &str) -> Result<Vec<String>, usize> {
        let is_meant = |(key, session): &(&SessionKey, &Session<W>)| match which {
            Which::All => true,
            Which::Named(name) => key.name.as_str() == name,
            Which::Numbered(number) => session.number == number,
        };
        let keys: Vec<SessionKey> = self.live.iter().filter(is_meant).map(|(key, _)| key.clone()).collect();
        if matches!(which, Which::Named(_)) && keys.len() > 1 {
            return Err(keys.len());
        }
        for key in &keys {
            match self.live.get_mut(key) {
                Some(session) if session.worker.is_none() => {
                    session.to_end = Some(why.to_owned());
                    session.stop.cancel();
                }
                _ => self.end_one(key, why),
            }
        }
        Ok(keys.iter().map(|key| key.name.to_string()).collect())
    }

    /// Ends all of them, for good.
    pub(super) fn close(&mut self) {
        self.closed = true;
        // All of them: there is nothing that could be meant otherwise.
        let _ = self.end(Which::All, "Lockhouse was shut down");
    }

    /// A worker that rests can be killed by anyone who may.
    pub(super) fn end_the_dead(&mut self, is_alive: impl Fn(&W) -> bool) {
        self.end_resting(|_, worker| {
            (!is_alive(worker)).then(|| "its worker was killed from outside while it was idle".to_owned())
        });
    }

    /// Ends those that nobody has used for too long, and those that are too old. Gives the time of the next end.
    pub(super) fn end_the_overdue(&mut self, now: Instant) -> Option<Instant> {
        let SessionSettings { idle, life, .. } = self.settings;
        self.end_resting(|session, _| match () {
            () if session.created + life <= now => Some(too_old(life)),
            () if session.used + idle <= now => {
                Some(format!("nobody had used it for {} s", idle.as_secs_f32()))
            }
            () => None,
        });
        let resting = self.live.values().filter(|session| session.worker.is_some());
        resting.map(|session| (session.used + idle).min(session.created + life)).min()
    }

    /// Ends those of which no run is under way and that have a reason for it.
    fn end_resting(&mut self, reason: impl Fn(&Session<W>, &W) -> Option<String>) {
        let over = |(key, session): (&SessionKey, &Session<W>)| {
            let why = reason(session, session.worker.as_ref()?)?;
            Some((key.clone(), why))
        };
        let over: Vec<(SessionKey, String)> = self.live.iter().filter_map(over).collect();
        over.iter().for_each(|(key, why)| self.end_one(key, why));
    }

    /// Of every owner, in the order in which they began.
    pub(super) fn list(&self, now: Instant) -> Vec<Listed> {
        let listed = |(key, session): (&SessionKey, &Session<W>)| Listed {
            id: session.number,
            owner: session.owner.clone(),
            name: key.name.to_string(),
            language: session.language.as_str().into(),
            state: session.state().into(),
            runs: session.runs,
            unused_s: now.duration_since(session.used).as_secs(),
            age_s: now.duration_since(session.created).as_secs(),
        };
        let mut all: Vec<Listed> = self.live.iter().map(listed).collect();
        all.sort_by_key(|session| session.id);
        all
    }

    fn take_untold(&mut self, key: &SessionKey) -> Option<String> {
        let at = self.untold.iter().position(|(ended, _)| ended == key)?;
        self.untold.remove(at).map(|(_, why)| why)
    }

    /// Ends a session, and its worker with it. Whoever waits for it is told now, or else whoever asks for it next.
    fn end_one(&mut self, key: &SessionKey, why: &str) {
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
    fn in_words(&self, owner: &Owner, now: Instant) -> String {
        let (own, others): (Vec<_>, Vec<_>) = self.live.iter().partition(|(key, _)| key.owner == *owner);
        let shown = |(key, session): (&SessionKey, &Session<W>)| match session.state() {
            "idle" => format!("{} (idle for {} s)", key.name, now.duration_since(session.used).as_secs()),
            state => format!("{} ({state})", key.name),
        };
        let mut words: Vec<String> = own.into_iter().map(shown).collect();
        if !others.is_empty() {
            words.push("those of other clients".to_owned());
        }
        words.join(", ")
    }
}

fn too_old(life: Duration) -> String {
    format!("it was {} s old, and a session gets no older", life.as_secs_f32())
}
