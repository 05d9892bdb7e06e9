//! From a request that was checked to the worker of its run.

use std::time::{Duration, Instant};

use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, Stage, traces};
use lockhouse_pool::{Pool, PoolError};
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::Caller;
use tracing::Instrument;

use super::CodeRequest;
use crate::execution::{Answer, Cancellation, Held, Place, Refusal, Sandbox, Stop};
use crate::sessions::{NoTurn, Turn};
use crate::supervisor::{NoEngine, Supervisor};

/// How long an execution waits for a worker, at least.
const LEASE_PATIENCE: Duration = Duration::from_secs(20);
/// What whoever waited that long is told to wait before they try again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What a run takes place in.
pub(super) struct Acquired {
    pub(super) place: Place,
    /// Of a run in a session.
    pub(super) turn: Option<Turn>,
    pub(super) sandbox: Sandbox,
}

/// Why an execution has no worker.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAcquired {
    #[error("{}", .0.message())]
    Cancelled(Cancellation),
    #[error("Lockhouse is ending, and this did not begin; run it again")]
    Shutdown,
    #[error("no worker became free within {} s", .0.as_secs_f32())]
    NoneFree(Duration),
    #[error(transparent)]
    NoEngine(#[from] NoEngine),
    #[error("no {} worker: {error}", language.as_str())]
    Pool { language: Language, error: PoolError },
    #[error(transparent)]
    NoTurn(#[from] NoTurn),
}

impl NotAcquired {
    fn stopped(why: Cancellation) -> Self {
        match why {
            Cancellation::Shutdown => Self::Shutdown,
            why => Self::Cancelled(why),
        }
    }

    /// When there may be a worker, as far as that is known.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoneFree(_) => Some(RETRY_AFTER),
            Self::Pool { error: PoolError::QueueFull { retry_after, .. }, .. } => Some(*retry_after),
            _ => None,
        }
    }

    fn refusal(&self) -> Refusal {
        match self {
            _ if self.retry_after().is_some() => Refusal::Busy,
            Self::NoTurn(NoTurn::Ended { .. }) => Refusal::SessionEnded,
            Self::NoTurn(NoTurn::OtherLanguage { .. }) => Refusal::InvalidRequest,
            Self::NoTurn(NoTurn::Busy(_) | NoTurn::TooMany { .. } | NoTurn::Share { .. }) => {
                Refusal::SessionsBusy
            }
            _ => Refusal::Unavailable,
        }
    }

    fn hint(&self) -> &'static str {
        match (self, self.refusal()) {
            (Self::NoTurn(NoTurn::Closed), _) => "Lockhouse is ending",
            (_, Refusal::Busy) => "nothing was run: send it again after retry_after_s seconds",
            (_, Refusal::SessionEnded) => {
                "define again what the code needs, in the new session or without one"
            }
            (_, Refusal::InvalidRequest) => "sessions of both languages can be open",
            (_, Refusal::SessionsBusy) => "a session that nobody uses ends by itself after a while",
            _ => "run `lockhouse doctor` to see what this host gives",
        }
    }

    pub(super) fn answer(&self, execution: ExecutionId) -> Answer {
        if let Self::Cancelled(why) = self {
            return Answer::cancelled(execution, *why);
        }
        let mut answer = Answer::refused(execution, self.refusal(), self.to_string(), self.hint());
        answer.retry_after = self.retry_after();
        answer
    }
}

impl Supervisor {
    /// Waits for a worker, on a clock of its own: the code's time begins when it runs, not while an interpreter starts.
    pub(super) async fn acquire(
        &self,
        caller: &Caller,
        principal: &Principal,
        request: &CodeRequest,
        stop: &Stop,
    ) -> Result<Acquired, NotAcquired> {
        let patience = self.settings.limits.wall.max(LEASE_PATIENCE);
        let began = Instant::now();
        let client = caller.client.as_ref().map(|client| client.as_str());
        let place = tokio::time::timeout(patience, self.place(principal, client, request))
            .instrument(traces::part("wait for a worker"));
        let (place, turn) = tokio::select! {
            place = place => place.unwrap_or(Err(NotAcquired::NoneFree(patience)))?,
            why = stop.wanted(None, principal, &self.life) => return Err(NotAcquired::stopped(why)),
        };
        telemetry::took(Stage::Lease, began.elapsed());
        let reduced = self.pool(request.language).map(Pool::reduced).unwrap_or_default();
        Ok(Acquired { place, turn, sandbox: Sandbox { reduced } })
    }

    /// A worker of its own, or that of its session.
    async fn place(
        &self,
        principal: &Principal,
        client: Option<&str>,
        request: &CodeRequest,
    ) -> Result<(Place, Option<Turn>), NotAcquired> {
        let language = request.language;
        let failed = |error| NotAcquired::Pool { language, error };
        let pool = self.pool(language).map_err(Clone::clone)?;
        let Some(key) = &request.session else {
            return Ok((Place::Leased(pool.lease(principal.owner()).await.map_err(failed)?), None));
        };
        let mut turn = self.sessions.turn(key, language, &principal.in_words(client)).await?;
        let held = match turn.take_worker() {
            Some(held) => held,
            None => match pool.for_session().await {
                Ok(worker) => Held::new(worker),
                Err(error) => {
                    turn.never_began(&error.to_string());
                    return Err(failed(error));
                }
            },
        };
        Ok((Place::Held(held), Some(turn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_refusal_and_says_what_to_do() {
        let (name, language) = ("s".to_owned(), Language::Python);
        let retry_after = Duration::from_secs(3);
        let pool = |error| NotAcquired::Pool { language, error };
        let no_turn = NotAcquired::NoTurn;
        let table = [
            (NotAcquired::Shutdown, Refusal::Unavailable, "lockhouse doctor", None),
            (NotAcquired::NoneFree(LEASE_PATIENCE), Refusal::Busy, "retry_after_s", Some(RETRY_AFTER)),
            (NoEngine::NotStarted(language).into(), Refusal::Unavailable, "lockhouse doctor", None),
            (pool(PoolError::Closed), Refusal::Unavailable, "lockhouse doctor", None),
            (
                pool(PoolError::QueueFull { waiting: 1, retry_after }),
                Refusal::Busy,
                "again",
                Some(retry_after),
            ),
            (
                no_turn(NoTurn::Ended { name: name.clone(), why: String::new() }),
                Refusal::SessionEnded,
                "define again",
                None,
            ),
            (no_turn(NoTurn::Busy(name)), Refusal::SessionsBusy, "ends by itself", None),
            (no_turn(NoTurn::Closed), Refusal::Unavailable, "Lockhouse is ending", None),
        ];
        for (why, refusal, hint, retry_after) in table {
            let answer = why.answer(ExecutionId(1));
            assert_eq!((answer.refusal, answer.retry_after), (Some(refusal), retry_after), "{why:?}");
            let error = answer.error.expect("an error");
            assert_eq!(error.message, why.to_string());
            assert!(error.hint.expect("a hint").contains(hint), "{why:?}");
        }
    }

    #[test]
    fn what_is_cancelled_is_no_refusal_but_at_the_end_of_the_process() {
        let answer = NotAcquired::stopped(Cancellation::Client).answer(ExecutionId(1));
        assert_eq!((answer.refusal, answer.status), (None, crate::execution::Status::Cancelled));
        assert!(matches!(NotAcquired::stopped(Cancellation::Shutdown), NotAcquired::Shutdown));
    }
}
