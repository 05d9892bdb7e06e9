//! One run's hold on its session.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Session, SessionKey, Sessions, too_old};
use crate::execution::{Ending, Held, InSession};

/// A run's turn. While it lasts no other run has the session's worker. A session whose turn is dropped has ended.
#[derive(Debug)]
pub struct Turn {
    sessions: Sessions,
    key: SessionKey,
    number: u64,
    held: Option<Held>,
    runs: u32,
    stop: CancellationToken,
    is_over: bool,
}

impl Session {
    /// The turn of its next run.
    pub(super) fn next(&mut self, sessions: &Sessions, key: &SessionKey, held: Held) -> Turn {
        self.turn(sessions, key, Some(held))
    }

    pub(super) fn turn(&mut self, sessions: &Sessions, key: &SessionKey, held: Option<Held>) -> Turn {
        self.runs += 1;
        self.used = Instant::now();
        Turn {
            sessions: sessions.clone(),
            key: key.clone(),
            number: self.number,
            held,
            runs: self.runs,
            stop: self.stop.clone(),
            is_over: false,
        }
    }
}

impl Turn {
    /// The session's worker; none when this run begins the session.
    pub fn take_worker(&mut self) -> Option<Held> {
        self.held.take()
    }

    /// Cancelled when the session is to end while this run is under way.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The session could not begin: there is nothing that anybody would miss.
    pub fn never_began(mut self, why: &str) {
        self.is_over = true;
        let mut state = self.sessions.state();
        state.end(&self.key, why);
        let _ = state.take_untold(&self.key);
    }

    /// After the run: gives the worker back for the next one, or the session ends. What the answer says of it.
    pub fn over(mut self, held: Option<Held>, ending: &Ending) -> InSession {
        let (name, runs) = (self.key.name.to_string(), self.runs);
        let ended = self.settle(held, || ending.of_session());
        InSession { name, runs, ended }
    }

    /// Why the session ended, if it did.
    fn settle(&mut self, held: Option<Held>, why: impl FnOnce() -> String) -> Option<String> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let life = self.sessions.0.settings.life;
        let mut state = self.sessions.state();
        let session = state.live.get_mut(&self.key).filter(|session| session.number == self.number)?;
        let is_old = session.created.elapsed() >= life;
        let end = match (session.to_end.take(), held) {
            (Some(why), _) => why,
            (None, None) => why(),
            (None, Some(_)) if is_old => too_old(life),
            (None, Some(held)) => {
                session.give(&self.sessions, &self.key, held);
                self.sessions.0.changed.notify_one();
                return None;
            }
        };
        state.end(&self.key, &end);
        Some(end)
    }
}

impl Session {
    /// To the run that has waited longest, or nobody.
    fn give(&mut self, sessions: &Sessions, key: &SessionKey, held: Held) {
        self.used = Instant::now();
        let mut held = held;
        while let Some(waiting) = self.waiting.pop_front() {
            if waiting.is_closed() {
                continue;
            }
            let runs = self.runs;
            match waiting.send(Ok(self.next(sessions, key, held))) {
                Ok(()) => return,
                Err(Ok(mut turn)) => {
                    turn.is_over = true;
                    let Some(returned) = turn.held.take() else { return };
                    (held, self.runs) = (returned, runs);
                }
                Err(Err(_)) => return,
            }
        }
        self.held = Some(held);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // One that nobody took any more leaves the session as it is.
        let held = self.held.take();
        let _ = self.settle(held, || "its run broke".to_owned());
    }
}
