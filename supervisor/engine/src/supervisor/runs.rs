//! Runs of code: each is checked, gets a worker, and has exactly one answer.

mod acquire;

use std::time::Duration;

use lockhouse_audit::{End, Program, RefusedRun};
use lockhouse_base::language::Language;
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_base::telemetry::{self, Stage, traces};
use lockhouse_gate::{Gate, Requester, Scope, ScopeError};
use lockhouse_policies::ClientName;
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::Caller;
use lockhouse_upstream::ai_client::{AiClient, Line, Looks, OpenQuestions};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Supervisor, note};
use crate::execution::{self, Answer, Cancellation, Ended, ExecutionLimits, Refusal, Sandbox, Stop};
use crate::quotas::NoRun;
use crate::sessions::{SessionKey, Turn};
use acquire::Acquired;

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
            Err(why) => Answer::refused(execution, Refusal::InvalidRequest, why.to_string(), why.hint()),
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

    fn check(&self, principal: &Principal, request: &CodeRequest) -> Result<Scope, InvalidRequest> {
        let (bytes, limit) = (request.code.len(), self.settings.code_bytes_max);
        if request.code.trim().is_empty() {
            return Err(InvalidRequest::Empty);
        }
        if bytes > limit {
            return Err(InvalidRequest::TooLong { bytes, limit });
        }
        let granted = self.gate().granted(principal);
        match &request.servers {
            None => Ok(granted),
            Some(names) => granted.named(names).map_err(InvalidRequest::Servers),
        }
    }

    /// A run, from its worker to its answer: acquire, record, run, settle.
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
        let Acquired { place, turn, sandbox } = match self.acquire(&caller, &principal, &request, stop).await
        {
            Ok(acquired) => acquired,
            Err(why) => return why.answer(execution),
        };
        // To its end, whatever is in force by then.
        let gate = self.gate();
        let owner = principal.owner();
        let limits = self.limits(&request, owner);
        let from = self.requester(&gate, caller, principal.clone(), &request, scope);
        record(&gate, &from, &request);
        let stopping = stop.wanted(turn.as_ref().map(Turn::stop), &principal, &self.life);
        let ended = execution::run(place, request.code, from, &gate, &limits, looks, stopping)
            .instrument(traces::part("run in the worker"))
            .await;
        self.charge(owner, &limits, &ended);
        settle(&gate, execution, ended, &limits, turn, sandbox)
    }

    fn limits(&self, request: &CodeRequest, owner: Owner) -> ExecutionLimits {
        let limits = self.settings.limits;
        let wall = request.timeout.unwrap_or(limits.wall).min(limits.wall);
        ExecutionLimits { wall, cpu_credit: self.quotas.cpu_credit(owner), ..limits }
    }

    /// On whose behalf the gate answers what the code asks.
    fn requester(
        &self,
        gate: &Gate,
        caller: Caller,
        principal: Principal,
        request: &CodeRequest,
        scope: Scope,
    ) -> Requester {
        let (language, code) = (Some(request.language), request.code.as_str().into());
        let scope = scope.within(&gate.servers());
        Requester::new(caller, language, principal, scope, code, self.approvers.clone(), gate.audit())
    }

    /// Counts what a run has used.
    fn charge(&self, owner: Owner, limits: &ExecutionLimits, ended: &Ended) {
        telemetry::took(Stage::Run, ended.wall);
        if let Some((credit, used)) = limits.cpu_credit.zip(ended.cpu) {
            self.quotas.charge_cpu(owner, used.min(credit));
        }
        if let Some(reason) = ended.ending.killed_for() {
            telemetry::killed(reason);
        }
    }
}

/// Puts a run that is about to begin into the audit log.
fn record(gate: &Gate, from: &Requester, request: &CodeRequest) {
    let program = Program {
        language: request.language,
        code: &request.code,
        servers: from.scope.servers(),
        session: request.session.as_ref().map(|key| key.name.as_str()),
        policy: gate.policy_digest(),
    };
    note(gate.audit().execution(from.caller.execution, from.caller.client.as_ref(), program));
}

/// Gives the worker of a session back, puts the end of the run into the audit log, and makes its answer.
fn settle(
    gate: &Gate,
    execution: ExecutionId,
    mut ended: Ended,
    limits: &ExecutionLimits,
    turn: Option<Turn>,
    sandbox: Sandbox,
) -> Answer {
    let (wall, cpu) = (ended.wall, ended.cpu);
    let session = turn.map(|turn| turn.over(ended.held.take(), &ended.ending));
    let mut answer = Answer::new(execution, ended, limits.wall.as_secs_f32(), sandbox);
    let (status, calls) = (answer.status.as_str(), answer.calls.len());
    note(gate.audit().end(execution, End { status, wall, cpu, calls }));
    answer.session = session;
    answer
}

/// Why a request to run code cannot be meant so.
#[derive(Debug, thiserror::Error)]
enum InvalidRequest {
    #[error("the code is empty")]
    Empty,
    #[error("the code has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
    /// What is wrong with the names in `servers`.
    #[error(transparent)]
    Servers(#[from] ScopeError),
}

impl InvalidRequest {
    fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "send a program; the value of its last expression is the result",
            Self::TooLong { .. } => "read large data through a tool instead of writing it into the code",
            Self::Servers(_) => "leave out servers for all of them",
        }
    }
}

fn over_quota(execution: ExecutionId, why: NoRun) -> Answer {
    let (reason, hint, retry_after) = match why {
        NoRun::TooOften { wait } => {
            ("rate", "do more in one program: calls are not counted here, runs are", Some(wait))
        }
        NoRun::TooMany { .. } => {
            ("quota", "run one program after the other, or do the work of several in one", None)
        }
    };
    telemetry::refused(reason);
    let mut answer = Answer::refused(execution, Refusal::RateLimited, why.to_string(), hint);
    answer.retry_after = retry_after;
    answer
}
