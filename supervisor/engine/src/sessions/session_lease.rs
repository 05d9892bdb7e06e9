//! The exclusive hold of one run on its session.

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::registry::{Acquisition, GrantResult, WorkerGrant};
use super::{SessionError, SessionKey, Sessions};
use crate::execution::{EndReason, SessionReport, SessionWorker};

/// The exclusive hold of one run on its session. If the lease is dropped without `release`, the session ends,
/// unless its worker is still in the lease.
#[derive(Debug)]
pub struct SessionLease {
    sessions: Sessions,
    key: SessionKey,
    grant: WorkerGrant<SessionWorker>,
    is_released: bool,
}

impl SessionLease {
    fn new(sessions: &Sessions, key: &SessionKey, grant: WorkerGrant<SessionWorker>) -> Self {
        Self { sessions: sessions.clone(), key: key.clone(), grant, is_released: false }
    }

    /// Waits until it is the turn of this run to use the session, and returns the lease. Returns as `Err` why the run
    /// cannot use the session.
    pub(super) async fn next(
        sessions: &Sessions,
        key: &SessionKey,
        next: Acquisition<SessionWorker>,
    ) -> Result<Self, SessionError> {
        match next {
            Acquisition::Granted(grant) => Ok(Self::new(sessions, key, grant)),
            Acquisition::Queued(granted) => {
                let mut waiting = Waiting { sessions, key, granted };
                let granted = (&mut waiting.granted).await.unwrap_or(Err(SessionError::Closed));
                granted.map(|grant| Self::new(sessions, key, grant))
            }
        }
    }

    /// Takes the worker of the session out of the lease. Returns `None` for the first run, which must create the
    /// worker.
    pub fn take_worker(&mut self) -> Option<SessionWorker> {
        self.grant.worker.take()
    }

    /// Returns the token that is cancelled when the session must end while this run is active.
    pub fn stop(&self) -> &CancellationToken {
        &self.grant.stop
    }

    /// Removes the session from the registry, because its worker could not be created for the reason `why`.
    pub fn abandon(mut self, why: &str) {
        self.is_released = true;
        self.sessions.0.state.lock().abandon(&self.key, self.grant.number, why);
    }

    /// Releases the session after a run. If `session_worker` is `None`, the session ends, for a reason that
    /// `end_reason` determines. Returns what the answer of the run reports about the session.
    pub fn release(mut self, session_worker: Option<SessionWorker>, end_reason: &EndReason) -> SessionReport {
        let (name, runs) = (self.key.name.to_string(), self.grant.runs);
        let ended = self.give_back(session_worker, || end_reason.session_end_reason());
        SessionReport { name, runs, ended }
    }

    /// Returns the worker to the registry of sessions. Without a worker, the session ends for the reason `why`. Returns
    /// the reason if the session ended, and `None` if it continues.
    fn give_back(
        &mut self,
        session_worker: Option<SessionWorker>,
        why: impl FnOnce() -> String,
    ) -> Option<String> {
        self.is_released = true;
        let (key, number) = (&self.key, self.grant.number);
        let ended = self.sessions.0.state.lock().give_back(key, number, session_worker, why, Instant::now());
        // The session that is idle now may be the next one to expire.
        self.sessions.wake_expiry_task();
        ended
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        if !self.is_released {
            let session_worker = self.grant.worker.take();
            let _ = self.give_back(session_worker, || "its run failed with an internal error".to_owned());
        }
    }
}

/// A run that waits in the queue of a session.
struct Waiting<'a> {
    sessions: &'a Sessions,
    key: &'a SessionKey,
    granted: oneshot::Receiver<GrantResult<SessionWorker>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        // A grant that arrives after the run stopped waiting is returned at once, and the session stays open.
        if let Ok(Ok(grant)) = self.granted.try_recv() {
            drop(SessionLease::new(self.sessions, self.key, grant));
        }
    }
}
