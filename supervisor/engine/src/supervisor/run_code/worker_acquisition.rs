//! Acquires the worker for a run: a fresh worker from the pool, or the worker of the run's session.

use std::time::{Duration, Instant};

use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, Stage, traces};
use lockhouse_pool::PoolError;
use lockhouse_protocol::{ExecutionId, Language};
use tracing::Instrument;

use super::CodeRequest;
use crate::execution::{
    Cancellation, ExecutionAnswer, Refusal, RunWorker, Sandbox, SessionWorker, StopHandle,
};
use crate::sessions::{SessionError, SessionLease};
use crate::supervisor::{EngineUnavailable, Supervisor};

/// The maximum time that a run waits for a worker is the longer of two times: this one, and the configured time limit
/// of a run.
const WORKER_WAIT_MIN: Duration = Duration::from_secs(20);
/// The delay after which an AI client should retry a run that got no worker in time.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The worker that was acquired for one run.
pub(super) struct AcquiredWorker {
    pub(super) worker: RunWorker,
    /// The exclusive hold on the session of the run. `None` for a run outside of sessions.
    pub(super) session_lease: Option<SessionLease>,
    pub(super) sandbox: Sandbox,
}

/// Why a run got no worker.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcquireError {
    #[error("{}", .0.message())]
    Cancelled(Cancellation),
    #[error("Lockhouse is shutting down, and the run was not started; run it again")]
    Shutdown,
    #[error("no worker became free within {} s", .0.as_secs_f32())]
    WorkerTimeout(Duration),
    #[error(transparent)]
    Engine(#[from] EngineUnavailable),
    #[error("no {} worker: {error}", language.as_str())]
    Pool { language: Language, error: PoolError },
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl AcquireError {
    fn from_cancellation(why: Cancellation) -> Self {
        match why {
            Cancellation::Shutdown => Self::Shutdown,
            why => Self::Cancelled(why),
        }
    }

    /// Returns the delay after which the AI client can retry the run; `None` if it is unknown.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::WorkerTimeout(_) => Some(RETRY_AFTER),
            Self::Pool { error: PoolError::QueueFull { retry_after, .. }, .. } => Some(*retry_after),
            _ => None,
        }
    }

    fn refusal(&self) -> Refusal {
        match self {
            _ if self.retry_after().is_some() => Refusal::Busy,
            Self::Session(SessionError::Ended { .. }) => Refusal::SessionEnded,
            Self::Session(SessionError::WrongLanguage { .. }) => Refusal::InvalidRequest,
            Self::Session(
                SessionError::Busy(_) | SessionError::TooMany { .. } | SessionError::ClientLimit { .. },
            ) => Refusal::SessionsBusy,
            _ => Refusal::Unavailable,
        }
    }

    fn hint(&self) -> &'static str {
        match (self, self.refusal()) {
            (Self::Session(SessionError::Closed), _) => "Lockhouse is shutting down",
            (_, Refusal::Busy) => "nothing was run: send it again after retry_after_s seconds",
            (_, Refusal::SessionEnded) => {
                "define what the code needs again, in the new session or without one"
            }
            (_, Refusal::InvalidRequest) => "sessions in both languages can be open at the same time",
            (_, Refusal::SessionsBusy) => "an unused session ends by itself after a while",
            _ => "run `lockhouse doctor` to see what this host supports",
        }
    }

    pub(super) fn to_answer(&self, execution: ExecutionId) -> ExecutionAnswer {
        if let Self::Cancelled(why) = self {
            return ExecutionAnswer::cancelled(execution, why.clone());
        }
        ExecutionAnswer::refused(execution, self.refusal(), self.to_string(), self.hint())
            .with_retry_after(self.retry_after())
    }
}

impl Supervisor {
    /// Waits for a worker for the run, until `stop` requests the end of the run. The wait has a time limit of its own;
    /// the time limit of the run starts only when its code starts.
    pub(super) async fn acquire(
        &self,
        principal: &Principal,
        request: &CodeRequest,
        stop: &StopHandle,
    ) -> Result<AcquiredWorker, AcquireError> {
        let wait_limit = self.settings.limits.wall.max(WORKER_WAIT_MIN);
        let began = Instant::now();
        let worker = tokio::time::timeout(wait_limit, self.find_worker(principal, request))
            .instrument(traces::run_stage("wait for a worker"));
        let (worker, session_lease) = tokio::select! {
            worker = worker => worker.unwrap_or(Err(AcquireError::WorkerTimeout(wait_limit)))?,
            why = stop.requested(None, principal, &self.lifecycle) => return Err(AcquireError::from_cancellation(why)),
        };
        telemetry::record_stage(Stage::Lease, began.elapsed());
        let reduced = self.pools.get(request.language.into()).and_then(Result::ok);
        let reduced = reduced.map(|pool| pool.missing_protections()).unwrap_or_default();
        Ok(AcquiredWorker { worker, session_lease, sandbox: Sandbox { reduced } })
    }

    /// Leases a fresh worker from the pool. For a run in a session, acquires the session and takes its worker
    /// instead, which is that of its first run, and has packages if that run needed them.
    async fn find_worker(
        &self,
        principal: &Principal,
        request: &CodeRequest,
    ) -> Result<(RunWorker, Option<SessionLease>), AcquireError> {
        let language = request.language;
        let failed = |error| AcquireError::Pool { language, error };
        let pool = self.pools.for_program(language, &request.code)?;
        let Some(key) = &request.session else {
            return Ok((RunWorker::Leased(pool.lease(principal.owner()).await.map_err(failed)?), None));
        };
        let mut session_lease = self.sessions.acquire(key, language, &principal.describe()).await?;
        let session_worker = match session_lease.take_worker() {
            Some(session_worker) => session_worker,
            None => match pool.take_for_session().await {
                Ok(worker) => SessionWorker::new(worker),
                Err(error) => {
                    session_lease.abandon(&error.to_string());
                    return Err(failed(error));
                }
            },
        };
        Ok((RunWorker::Session(session_worker), Some(session_lease)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_refusal_and_a_hint() {
        let (name, language) = ("s".to_owned(), Language::Python);
        let retry_after = Duration::from_secs(3);
        let pool = |error| AcquireError::Pool { language, error };
        let session = AcquireError::Session;
        let table = [
            (AcquireError::Shutdown, Refusal::Unavailable, "lockhouse doctor", None),
            (AcquireError::WorkerTimeout(WORKER_WAIT_MIN), Refusal::Busy, "retry_after_s", Some(RETRY_AFTER)),
            (EngineUnavailable::NotStarted(language).into(), Refusal::Unavailable, "lockhouse doctor", None),
            (pool(PoolError::Closed), Refusal::Unavailable, "lockhouse doctor", None),
            (
                pool(PoolError::QueueFull { waiting: 1, retry_after }),
                Refusal::Busy,
                "again",
                Some(retry_after),
            ),
            (
                session(SessionError::Ended { name: name.clone(), why: String::new() }),
                Refusal::SessionEnded,
                "define what",
                None,
            ),
            (session(SessionError::Busy(name)), Refusal::SessionsBusy, "ends by itself", None),
            (session(SessionError::Closed), Refusal::Unavailable, "Lockhouse is shutting down", None),
        ];
        for (why, refusal, hint, retry_after) in table {
            let answer = why.to_answer(ExecutionId(1));
            let error = answer.error.expect("an error");
            let retry_after_s = retry_after.map(|after: Duration| after.as_secs());
            assert_eq!((answer.refusal, error.retry_after_s), (Some(refusal), retry_after_s), "{why:?}");
            assert_eq!(error.message, why.to_string());
            assert!(error.hint.expect("a hint").contains(hint), "{why:?}");
        }
    }

    #[test]
    fn cancellation_is_a_refusal_only_at_shutdown() {
        let answer = AcquireError::from_cancellation(Cancellation::Client).to_answer(ExecutionId(1));
        assert_eq!((answer.refusal, answer.status), (None, crate::execution::RunStatus::Cancelled));
        assert!(matches!(AcquireError::from_cancellation(Cancellation::Shutdown), AcquireError::Shutdown));
    }
}
