//! The registry of sessions: their owners, their queues of waiting runs, and their expiry. The registry does no I/O:
//! the worker is a type parameter `W`, and callers pass the current time.

mod session;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lockhouse_messages::{Owner, SessionListing};
use lockhouse_protocol::Language;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{SessionError, SessionKey, SessionSelector, SessionSettings, WAITING_MAX};
use session::Session;
pub(super) use session::{GrantResult, WorkerGrant};

/// Maximum number of session ends that the registry remembers until they are reported to a run. When there are more,
/// the oldest is forgotten.
/// Bound: workers and programs.
const UNREPORTED_ENDS_MAX: usize = 256;

/// The result of acquiring a session for a run.
#[derive(Debug)]
pub(super) enum Acquisition<W> {
    /// No other run uses the session: this run may use its worker now.
    Granted(WorkerGrant<W>),
    /// Other runs use the session first. When it is the turn of this run, the receiver gets the grant of the worker. It
    /// gets an error instead if the session ends before.
    Queued(oneshot::Receiver<GrantResult<W>>),
}

#[derive(Debug)]
pub(super) struct Registry<W> {
    settings: SessionSettings,
    live: BTreeMap<SessionKey, Session<W>>,
    /// The ended sessions whose end was not reported to a run yet, each with the reason of its end.
    unreported_ends: VecDeque<(SessionKey, String)>,
    begun: u64,
    closed: bool,
}

impl<W> Registry<W> {
    pub(super) fn new(settings: SessionSettings) -> Self {
        Self { settings, live: BTreeMap::new(), unreported_ends: VecDeque::new(), begun: 0, closed: false }
    }

    /// Acquires the session with this key for one run, or queues the run if another run uses the session. Starts a
    /// session if there is none with this key.
    pub(super) fn acquire(
        &mut self,
        key: &SessionKey,
        language: Language,
        owner: &str,
        now: Instant,
    ) -> Result<Acquisition<W>, SessionError> {
        if self.closed {
            return Err(SessionError::Closed);
        }
        let name = || key.name.to_string();
        if let Some(why) = self.take_unreported_end(key) {
            return Err(SessionError::Ended { name: name(), why });
        }
        let Some(session) = self.live.get_mut(key) else {
            return self.begin(key, language, owner, now).map(Acquisition::Granted);
        };
        if session.language != language {
            let (language, requested) = (session.language.as_str(), language.as_str());
            return Err(SessionError::WrongLanguage { name: name(), language, requested });
        }
        if let Some(worker) = session.worker.take() {
            return Ok(Acquisition::Granted(session.grant(Some(worker), now)));
        }
        session.waiting.retain(|waiting| !waiting.is_closed());
        if session.waiting.len() >= WAITING_MAX {
            return Err(SessionError::Busy(name()));
        }
        let (waiting, turn) = oneshot::channel();
        session.waiting.push_back(waiting);
        Ok(Acquisition::Queued(turn))
    }

    fn begin(&mut self, key: &SessionKey, language: Language, owner: &str, now: Instant) -> GrantResult<W> {
        let SessionSettings { max, per_client, .. } = self.settings;
        let own = self.live.keys().filter(|other| other.owner == key.owner).count();
        if key.owner.is_limited() && own >= per_client {
            return Err(SessionError::ClientLimit {
                max: per_client,
                open: self.describe_open(&key.owner, now),
            });
        }
        if self.live.len() >= max {
            return Err(SessionError::TooMany { max, open: self.describe_open(&key.owner, now) });
        }
        self.begun += 1;
        let session = Session::new(self.begun, owner, language, now);
        Ok(self.live.entry(key.clone()).or_insert(session).grant(None, now))
    }

    /// Returns the worker to the session after a run. If `worker` is `None`, the session ends for the reason `why`.
    /// Returns the reason if the session ended, and `None` if it continues. Does nothing and returns `None` if the
    /// registry no longer has a session with this key and number.
    pub(super) fn give_back(
        &mut self,
        key: &SessionKey,
        number: u64,
        worker: Option<W>,
        why: impl FnOnce() -> String,
        now: Instant,
    ) -> Option<String> {
        let max_age = self.settings.max_age;
        let session = self.live.get_mut(key).filter(|session| session.number == number)?;
        let is_old = session.created + max_age <= now;
        let end = match (session.end_requested.take(), worker) {
            (Some(why), _) => why,
            (None, None) => why(),
            (None, Some(_)) if is_old => too_old(max_age),
            (None, Some(worker)) => {
                session.hand_over(worker, now);
                return None;
            }
        };
        self.end_session(key, &end);
        Some(end)
    }

    /// Removes the session with this key and number, because its worker could not be created. The reason `why` is
    /// reported to the runs that wait for the session, but not to later runs under its name.
    pub(super) fn abandon(&mut self, key: &SessionKey, number: u64, why: &str) {
        if self.live.get(key).is_some_and(|session| session.number == number) {
            self.end_session(key, why);
            let _ = self.take_unreported_end(key);
        }
    }

    /// Ends the selected sessions and stops their active runs. Returns the names of the ended sessions. `why` is the
    /// reason that the runs get which wait for these sessions or next use their names.
    ///
    /// # Errors
    /// Returns the number of sessions with the selected name if there is more than one. In this case, no session ends.
    pub(super) fn end(&mut self, which: SessionSelector<'_>, why: &str) -> Result<Vec<String>, usize> {
        let is_selected = |(key, session): &(&SessionKey, &Session<W>)| match which {
            SessionSelector::All => true,
            SessionSelector::Named(name) => key.name.as_str() == name,
            SessionSelector::Numbered(number) => session.number == number,
            SessionSelector::OwnedBy(owner) => key.owner == owner,
        };
        let keys: Vec<SessionKey> =
            self.live.iter().filter(is_selected).map(|(key, _)| key.clone()).collect();
        if matches!(which, SessionSelector::Named(_)) && keys.len() > 1 {
            return Err(keys.len());
        }
        for key in &keys {
            match self.live.get_mut(key) {
                Some(session) if session.worker.is_none() => {
                    session.end_requested = Some(why.to_owned());
                    session.stop.cancel();
                }
                _ => self.end_session(key, why),
            }
        }
        Ok(keys.iter().map(|key| key.name.to_string()).collect())
    }

    /// Ends all sessions of an owner that cannot use them any more, and forgets the ends that it was not told.
    pub(super) fn forget(&mut self, owner: Owner) {
        // Only a name can be ambiguous.
        let _ = self.end(SessionSelector::OwnedBy(owner), "its client has disconnected");
        self.unreported_ends.retain(|(key, _)| key.owner != owner);
    }

    /// Ends all sessions and refuses to start new ones.
    pub(super) fn close(&mut self) {
        self.closed = true;
        // `SessionSelector::All` is never ambiguous.
        let _ = self.end(SessionSelector::All, "Lockhouse was shut down");
    }

    /// Ends idle sessions whose worker process was killed by something other than Lockhouse.
    pub(super) fn end_killed(&mut self, is_alive: impl Fn(&W) -> bool) {
        self.end_resting(|_, worker| {
            (!is_alive(worker)).then(|| "its worker was killed from outside while it was idle".to_owned())
        });
    }

    /// Ends idle sessions that were unused for too long or have reached the maximum age. Returns the time at which the
    /// next idle session expires; `None` if no session is idle.
    pub(super) fn end_expired(&mut self, now: Instant) -> Option<Instant> {
        let SessionSettings { idle_timeout, max_age, .. } = self.settings;
        self.end_resting(|session, _| match () {
            () if session.created + max_age <= now => Some(too_old(max_age)),
            () if session.used + idle_timeout <= now => {
                Some(format!("it was not used for {} s", idle_timeout.as_secs_f32()))
            }
            () => None,
        });
        let resting = self.live.values().filter(|session| session.worker.is_some());
        resting.map(|session| (session.used + idle_timeout).min(session.created + max_age)).min()
    }

    /// Ends the idle sessions for which `reason` returns a reason, with that reason.
    fn end_resting(&mut self, reason: impl Fn(&Session<W>, &W) -> Option<String>) {
        let over = |(key, session): (&SessionKey, &Session<W>)| {
            let why = reason(session, session.worker.as_ref()?)?;
            Some((key.clone(), why))
        };
        let over: Vec<(SessionKey, String)> = self.live.iter().filter_map(over).collect();
        over.iter().for_each(|(key, why)| self.end_session(key, why));
    }

    /// Lists the sessions of all owners, ordered by the time of their start.
    pub(super) fn list(&self, now: Instant) -> Vec<SessionListing> {
        let listed = |(key, session): (&SessionKey, &Session<W>)| SessionListing {
            id: session.number,
            owner: session.owner.clone(),
            name: key.name.to_string(),
            language: session.language.as_str().into(),
            state: session.state().into(),
            runs: session.runs,
            unused_s: now.duration_since(session.used).as_secs(),
            age_s: now.duration_since(session.created).as_secs(),
        };
        let mut all: Vec<SessionListing> = self.live.iter().map(listed).collect();
        all.sort_by_key(|session| session.id);
        all
    }

    fn take_unreported_end(&mut self, key: &SessionKey) -> Option<String> {
        let at = self.unreported_ends.iter().position(|(ended, _)| ended == key)?;
        self.unreported_ends.remove(at).map(|(_, why)| why)
    }

    /// Ends a session and kills its worker. The reason `why` is reported to the runs that wait for the session, or if
    /// no run waits, to the next run under the session's name.
    fn end_session(&mut self, key: &SessionKey, why: &str) {
        let Some(session) = self.live.remove(key) else { return };
        let mut is_reported = false;
        for waiting in session.waiting {
            let ended = SessionError::Ended { name: key.name.to_string(), why: why.to_owned() };
            is_reported |= waiting.send(Err(ended)).is_ok();
        }
        if is_reported {
            return;
        }
        self.unreported_ends.push_back((key.clone(), why.to_owned()));
        if self.unreported_ends.len() > UNREPORTED_ENDS_MAX {
            self.unreported_ends.pop_front();
        }
    }

    /// Lists the open sessions of one owner in words, for an error message. If other owners have open sessions, the
    /// text mentions this without names.
    fn describe_open(&self, owner: &Owner, now: Instant) -> String {
        let (own, others): (Vec<_>, Vec<_>) = self.live.iter().partition(|(key, _)| key.owner == *owner);
        let shown = |(key, session): (&SessionKey, &Session<W>)| match session.state() {
            "idle" => format!("{} (idle for {} s)", key.name, now.duration_since(session.used).as_secs()),
            state => format!("{} ({state})", key.name),
        };
        let mut words: Vec<String> = own.into_iter().map(shown).collect();
        if !others.is_empty() {
            words.push("sessions of other clients".to_owned());
        }
        words.join(", ")
    }
}

fn too_old(max_age: Duration) -> String {
    format!("it reached the maximum age of {} s", max_age.as_secs_f32())
}
