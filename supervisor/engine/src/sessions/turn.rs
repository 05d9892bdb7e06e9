//! One run's hold on its session.

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::state::{Grant, Granted, Next};
use super::{NoTurn, SessionKey, Sessions};
use crate::execution::{Ending, Held, InSession};

/// A run's turn. While it lasts no other run has the session's worker. A session whose turn is dropped has ended, unless its
/// worker was never taken.
#[derive(Debug)]
pub struct Turn {
    sessions: Sessions,
    key: SessionKey,
    grant: Grant<Held>,
    is_over: bool,
}

impl Turn {
    fn new(sessions: &Sessions, key: &SessionKey, grant: Grant<Held>) -> Self {
        Self { sessions: sessions.clone(), key: key.clone(), grant, is_over: false }
    }

    /// Waits for it, if other runs come before.
    pub(super) async fn next(
        sessions: &Sessions,
        key: &SessionKey,
        next: Next<Held>,
    ) -> Result<Self, NoTurn> {
        match next {
            Next::Now(grant) => Ok(Self::new(sessions, key, grant)),
            Next::Later(granted) => {
                let mut waiting = Waiting { sessions, key, granted };
                let granted = (&mut waiting.granted).await.unwrap_or(Err(NoTurn::Closed));
                granted.map(|grant| Self::new(sessions, key, grant))
            }
        }
    }

    /// The session's worker; none when this run begins the session.
    pub fn take_worker(&mut self) -> Option<Held> {
        self.grant.worker.take()
    }

    /// Cancelled when the session is to end while this run is under way.
    pub fn stop(&self) -> &CancellationToken {
        &self.grant.stop
    }

    /// The session could not begin: there is nothing that anybody would miss.
    pub fn never_began(mut self, why: &str) {
        self.is_over = true;
        self.sessions.state().never_began(&self.key, self.grant.number, why);
    }

    /// After the run: gives the worker back for the next one, or the session ends. What the answer says of it.
    pub fn over(mut self, held: Option<Held>, ending: &Ending) -> InSession {
        let (name, runs) = (self.key.name.to_string(), self.grant.runs);
        let ended = self.give_back(held, || ending.of_session());
        InSession { name, runs, ended }
    }

    /// Why the session ended, if it did.
    fn give_back(&mut self, held: Option<Held>, why: impl FnOnce() -> String) -> Option<String> {
        self.is_over = true;
        let (key, number) = (&self.key, self.grant.number);
        let ended = self.sessions.state().give_back(key, number, held, why, Instant::now());
        // The worker that rests now may be the first that nobody uses for too long.
        self.sessions.look_again();
        ended
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            let held = self.grant.worker.take();
            let _ = self.give_back(held, || "its run broke".to_owned());
        }
    }
}

/// A run that waits for its turn.
struct Waiting<'a> {
    sessions: &'a Sessions,
    key: &'a SessionKey,
    granted: oneshot::Receiver<Granted<Held>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        // A turn that came when nobody waited any more leaves the session as it is.
        if let Ok(Ok(grant)) = self.granted.try_recv() {
            drop(Turn::new(self.sessions, self.key, grant));
        }
    }
}
