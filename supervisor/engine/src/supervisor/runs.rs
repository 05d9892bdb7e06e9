//! Runs of code: each is checked, gets a worker, and has exactly one answer.

use std::time::{Duration, Instant};

use lockhouse_audit::{End, Program, RefusedRun};
use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, Stage, traces};
use lockhouse_gate::{Requester, Scope};
use lockhouse_policies::ClientName;
use lockhouse_pool::{Pool, PoolError};
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::Caller;
use lockhouse_upstream::ai_client::{AiClient, Line, Looks, OpenQuestions};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Supervisor, note};
use crate::execution::{self, Answer, Cancellation, Held, Place, Refusal, Sandbox, Stop};
use crate::quotas::NoRun;
use crate::sessions::{NoTurn, SessionKey, Turn};

/// How long an execution waits for a worker, at least.
const LEASE_PATIENCE: Duration = Duration::from_secs(20);

/// What whoever waited that long is told to wait before they try again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// One request to run code.
#[derive(Debug)]
pub struct CodeRequest {
    pub language: Language,
    pub code: String,
    /// Shorter or longer than the default, never longer than the configured maximum.
    pub timeout: Option<Duration>,
    /// Only these servers, or of a server only these tools: `NAME`, `NAME.TOOL` and `NAME.BEGINNING*`.
    pub servers: Option<Vec<String>>,
    /// The session whose next run it is, or which it begins.
    pub session: Option<SessionKey>,
}

impl Supervisor {
    /// Runs code. There is always exactly one answer.
    pub async fn run_code(&self, request: CodeRequest, cancelled: &CancellationToken) -> Answer {
        self.run_code_for(None, request, cancelled).await
    }

    /// The same on behalf of an AI client, whose person servers may ask.
    pub async fn run_code_for(
        &self,
        mut line: Option<Line>,
        request: CodeRequest,
        cancelled: &CancellationToken,
    ) -> Answer {
        let (execution, looks) = match &mut line {
            Some(line) => (line.execution, std::mem::take(&mut line.looks)),
            None => (ExecutionId(uuid::Uuid::now_v7().as_u128()), Looks::default()),
        };
        let _owed = self.life.run();
        let language = request.language.as_str();
        let span = tracing::info_span!("execution", id = %execution, client = tracing::field::Empty);
        if let Some(client) = line.as_ref().and_then(|line| line.client.as_ref()) {
            span.record("client", client.as_str());
        }
        let client = line.as_ref().and_then(|line| line.client.clone());
        let what = (request.language, request.session.as_ref());
        let of_record = (client.clone(), request.language);
        let otherwise = if line.is_some() { Cancellation::Client } else { Cancellation::Interrupt };
        let (questions, stop) = (OpenQuestions::default(), Stop::with(cancelled, otherwise));
        let entered = self.executions.enter(execution, client, what, (&looks, &questions), stop);
        let answering = async {
            let answer = self.answer((execution, line, questions), request, looks, &entered.stop).await;
            tracing::debug!(status = answer.status.as_str(), "a run ended");
            if answer.refusal.is_some() {
                self.record_refusal(&answer, of_record.0.as_ref(), of_record.1);
            }
            answer
        };
        let traced = traces::run(execution, language);
        let answer = answering.instrument(span).instrument(traced.clone()).await;
        traces::ended(&traced, answer.status.as_str());
        telemetry::answered(language, answer.refusal.map_or(answer.status.as_str(), |_| "refused"));
        answer
    }

    async fn answer(
        &self,
        (execution, line, questions): (ExecutionId, Option<Line>, OpenQuestions),
        request: CodeRequest,
        looks: Looks,
        stop: &Stop,
    ) -> Answer {
        let principal = line.as_ref().map_or_else(Principal::local, |line| line.principal.clone());
        let running = match self.quotas.run(principal.owner()) {
            Ok(running) => running,
            Err(why) => return over_quota(execution, why),
        };
        let answer = match self.check(&principal, &request) {
            Ok(scope) => {
                let patience = self.settings.limits.question;
                let client = line.as_ref().and_then(|line| line.client.clone());
                let ai_client =
                    line.map(|line| AiClient::new(line, self.gate().audit(), patience, questions.clone()));
                let caller = Caller { execution, client, ai_client, questions, wire: None };
                self.run_checked(caller, principal, request, scope, looks, stop).await
            }
            Err((message, hint)) => Answer::refused(execution, Refusal::InvalidRequest, message, hint),
        };
        drop(running);
        answer
    }

    fn record_refusal(&self, answer: &Answer, client: Option<&ClientName>, language: Language) {
        let error = answer.error.as_ref();
        let outcome = error.map_or("refused", |error| error.kind.as_str());
        let reason = error.map_or("", |error| error.message.as_str());
        let execution = answer.execution;
        note(self.gate().audit().refused_run(RefusedRun { execution, client, language, outcome, reason }));
    }

    fn check(&self, principal: &Principal, request: &CodeRequest) -> Result<Scope, (String, &'static str)> {
        let (bytes, limit) = (request.code.len(), self.settings.code_bytes_max);
        if request.code.trim().is_empty() {
            return Err((
                "the code is empty".into(),
                "send a program; the value of its last expression is the result",
            ));
        }
        if bytes > limit {
            return Err((
                format!("the code has {bytes} bytes, the limit is {limit}"),
                "read large data through a tool instead of writing it into the code",
            ));
        }
        let granted = self.gate().granted(principal);
        match &request.servers {
            None => Ok(granted),
            Some(names) => {
                granted.named(names).map_err(|error| (error.to_string(), "leave out servers for all of them"))
            }
        }
    }

    async fn run_checked(
        &self,
        caller: Caller,
        principal: Principal,
        request: CodeRequest,
        scope: Scope,
        looks: Looks,
        stop: &Stop,
    ) -> Answer {
        let execution = caller.execution;
        let mut limits = self.settings.limits;
        limits.wall = request.timeout.unwrap_or(limits.wall).min(limits.wall);
        // A clock of its own: the code's time begins when it runs, not while an interpreter starts.
        let patience = self.settings.limits.wall.max(LEASE_PATIENCE);
        let asked = Instant::now();
        let client_of_session = caller.client.as_ref().map(|client| client.as_str().to_owned());
        let place = tokio::select! {
            place = tokio::time::timeout(patience, self.place(&principal, client_of_session.as_deref(), &request)).instrument(traces::part("wait for a worker")) => place.unwrap_or_else(|_| {
                let patience = patience.as_secs_f32();
                let reason = format!("no worker became free within {patience} s");
                Err(NoPlace::busy(reason, RETRY_AFTER))
            }),
            why = stop.wanted() => return Answer::cancelled(execution, why),
            () = self.life.stopping().cancelled() => {
                Err(unavailable("Lockhouse is ending, and this did not begin; run it again".into()))
            }
        };
        let (place, turn) = match place {
            Ok(place) => place,
            Err(NoPlace { refusal, reason, hint, retry_after }) => {
                let mut answer = Answer::refused(execution, refusal, reason, hint);
                answer.retry_after = retry_after;
                return answer;
            }
        };
        telemetry::took(Stage::Lease, asked.elapsed());
        let sandbox = Sandbox { reduced: self.pool(request.language).map(Pool::reduced).unwrap_or_default() };
        // To its end, whatever is in force by then.
        let gate = self.gate();
        let (code, approvers) = (request.code.as_str().into(), self.approvers.clone());
        let audit = gate.audit();
        let scope = scope.within(&gate.servers());
        let language = Some(request.language);
        let from = Requester::new(caller, language, principal.clone(), scope, code, approvers, audit.clone());
        let program = Program {
            language: request.language,
            code: &request.code,
            servers: from.scope.servers(),
            session: request.session.as_ref().map(|key| key.name.as_str()),
            policy: gate.policy_digest(),
        };
        note(audit.execution(execution, from.caller.client.as_ref(), program));
        limits.cpu_credit = self.quotas.cpu_credit(principal.owner());
        let running = execution::run(place, request.code, from, &gate, &limits, looks, stop)
            .instrument(traces::part("run in the worker"));
        let stopping = async {
            let ended = async {
                match &turn {
                    Some(turn) => turn.stop().cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let why = tokio::select! {
                () = ended => Cancellation::Session,
                () = principal.revoked() => Cancellation::Revoked,
                () = self.life.stopping().cancelled() => Cancellation::Shutdown,
            };
            stop.now(why);
            std::future::pending::<std::convert::Infallible>().await
        };
        let mut ended = tokio::select! {
            ended = running => ended,
            never = stopping => match never {},
        };
        let (wall, cpu) = (ended.wall, ended.cpu);
        telemetry::took(Stage::Run, wall);
        if let Some((credit, used)) = limits.cpu_credit.zip(cpu) {
            self.quotas.charge_cpu(principal.owner(), used.min(credit));
        }
        if let Some(reason) = ended.ending.killed_for() {
            telemetry::killed(reason);
        }
        let session = turn.map(|turn| turn.over(ended.held.take(), &ended.ending));
        let mut answer = Answer::new(execution, ended, limits.wall.as_secs_f32(), sandbox);
        answer.session = session;
        let (status, calls) = (answer.status.as_str(), answer.calls.len());
        note(audit.end(execution, End { status, wall, cpu, calls }));
        answer
    }

    /// A worker of its own, or that of its session.
    async fn place(
        &self,
        principal: &Principal,
        client: Option<&str>,
        request: &CodeRequest,
    ) -> Result<(Place, Option<Turn>), NoPlace> {
        let (owner, language) = (principal.owner(), request.language);
        let told = |error: PoolError| {
            let reason = format!("no {} worker: {error}", language.as_str());
            match error {
                PoolError::QueueFull { retry_after, .. } => NoPlace::busy(reason, retry_after),
                _ => unavailable(reason),
            }
        };
        let pool = self.pool(language).map_err(unavailable)?;
        let Some(key) = &request.session else {
            return Ok((Place::Leased(pool.lease(owner).await.map_err(told)?), None));
        };
        let mut turn =
            self.sessions.turn(key, language, &principal.in_words(client)).await.map_err(no_turn)?;
        let held = match turn.take_worker() {
            Some(held) => held,
            None => match pool.for_session().await {
                Ok(worker) => Held::new(worker),
                Err(error) => {
                    turn.never_began(&error.to_string());
                    return Err(told(error));
                }
            },
        };
        Ok((Place::Held(held), Some(turn)))
    }
}

fn over_quota(execution: ExecutionId, why: NoRun) -> Answer {
    telemetry::refused(if matches!(why, NoRun::TooOften { .. }) { "rate" } else { "quota" });
    let hint = match why {
        NoRun::TooOften { .. } => "do more in one program: calls are not counted here, runs are",
        NoRun::TooMany { .. } => "run one program after the other, or do the work of several in one",
    };
    let mut answer = Answer::refused(execution, Refusal::RateLimited, why.to_string(), hint);
    answer.retry_after = match why {
        NoRun::TooOften { wait } => Some(wait),
        NoRun::TooMany { .. } => None,
    };
    answer
}

/// Why an execution has no worker, and what to do about it.
struct NoPlace {
    refusal: Refusal,
    reason: String,
    hint: &'static str,
    /// When there may be one.
    retry_after: Option<Duration>,
}

impl NoPlace {
    fn new(refusal: Refusal, reason: String, hint: &'static str) -> Self {
        Self { refusal, reason, hint, retry_after: None }
    }

    fn busy(reason: String, retry_after: Duration) -> Self {
        let hint = "nothing was run: send it again after retry_after_s seconds";
        Self { retry_after: Some(retry_after), ..Self::new(Refusal::Busy, reason, hint) }
    }
}

fn unavailable(reason: String) -> NoPlace {
    NoPlace::new(Refusal::Unavailable, reason, "run `lockhouse doctor` to see what this host gives")
}

fn no_turn(why: NoTurn) -> NoPlace {
    let (refusal, hint) = match why {
        NoTurn::Ended { .. } => {
            (Refusal::SessionEnded, "define again what the code needs, in the new session or without one")
        }
        NoTurn::OtherLanguage { .. } => (Refusal::InvalidRequest, "sessions of both languages can be open"),
        NoTurn::Busy(_) | NoTurn::TooMany { .. } | NoTurn::Share { .. } => {
            (Refusal::SessionsBusy, "a session that nobody uses ends by itself after a while")
        }
        NoTurn::Closed => (Refusal::Unavailable, "Lockhouse is ending"),
    };
    NoPlace::new(refusal, why.to_string(), hint)
}
