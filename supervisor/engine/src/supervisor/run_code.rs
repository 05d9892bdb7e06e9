//! Serves requests to run code. Each request is checked, gets a worker, and has exactly one answer.

mod worker_acquisition;

use std::time::{Duration, Instant};

use lockhouse_audit::{ExecutionEnd, Program, RefusedRun};
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, Stage, traces};
use lockhouse_gate::{Gate, GivenFile, RunContext, RunFiles, Scope, ScopeError};
use lockhouse_messages::{Owner, RequestClaims};
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, Language};
use lockhouse_run_channel::{ProgressRequests, RunChannel, RunFollower};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::administrator_stop::HINT;
use super::{Supervisor, log_audit_error};
use crate::client_quotas::QuotaExceeded;
use crate::execution::{
    self, Cancellation, ExecutionAnswer, ExecutionLimits, OutputFollower, Refusal, RunResult, Sandbox,
    StopHandle, SubmittedProgram,
};
use crate::runs::{ActiveRun, ActiveRunGuard};
use crate::sessions::{SessionKey, SessionLease};
use worker_acquisition::AcquiredWorker;

/// One request to run code.
#[derive(Debug)]
pub struct CodeRequest {
    pub language: Language,
    pub code: String,
    /// The requested time limit of the run. `None`, or a limit above the configured maximum, means the configured
    /// maximum.
    pub timeout: Option<Duration>,
    /// The upstream servers and tools that the run may use: `NAME`, `NAME.TOOL` or `NAME.PREFIX*`. `None` for no
    /// restriction.
    pub servers: Option<Vec<String>>,
    /// The session in which the code runs, which is started if it does not exist. `None` for a run outside of
    /// sessions.
    pub session: Option<SessionKey>,
    /// Whether the code is only checked and not run. The check covers the syntax and the calls that the code will make.
    pub check_only: bool,
    /// Receives the output of the code while it runs. `None` if only the answer contains the output.
    pub output: Option<OutputFollower>,
    /// The files of this machine that the user gives to the run.
    pub given_files: Vec<GivenFile>,
    /// The ids that the AI client gave the request, for the records.
    pub claims: RequestClaims,
}

impl CodeRequest {
    /// Creates a request to run code outside of sessions, without restrictions.
    pub fn new(language: Language, code: impl Into<String>) -> Self {
        Self {
            language,
            code: code.into(),
            timeout: None,
            servers: None,
            session: None,
            check_only: false,
            output: None,
            given_files: Vec::new(),
            claims: RequestClaims::default(),
        }
    }
}

impl Supervisor {
    /// Runs code for the local user, without an AI client. Always returns exactly one answer, also for an invalid
    /// request and after `cancelled` has stopped the run.
    pub async fn run_code(&self, request: CodeRequest, cancelled: &CancellationToken) -> ExecutionAnswer {
        let channel = RunChannel::without_client(self.gate().audit());
        self.run_code_for(channel, ProgressRequests::default(), request, cancelled).await
    }

    /// Opens the channel of a new run to the AI client of a principal.
    pub(crate) fn open_channel(
        &self,
        principal: &Principal,
        is_direct: bool,
    ) -> (RunChannel, RunFollower, ProgressRequests) {
        RunChannel::open(principal.clone(), self.gate().audit(), self.settings.limits.question, is_direct)
    }

    /// Runs code on behalf of the AI client or the local user of `channel`. Through the channel, upstream servers may ask
    /// the user of the AI client questions. `progress_requests` receives requests for the progress of the run.
    pub async fn run_code_for(
        &self,
        channel: RunChannel,
        progress_requests: ProgressRequests,
        request: CodeRequest,
        cancelled: &CancellationToken,
    ) -> ExecutionAnswer {
        let execution = channel.execution();
        let _in_flight = self.lifecycle.begin_run();
        let language = request.language.as_str();
        let span = tracing::info_span!(
            "execution",
            id = %execution,
            client = tracing::field::Empty,
            correlation_id = tracing::field::Empty,
            request_id = tracing::field::Empty,
            traceparent = tracing::field::Empty,
        );
        for (name, claim) in request.claims.named() {
            span.record(name, self.gate().audit().without_secrets(claim));
        }
        if let Some(client) = channel.client() {
            span.record("client", client.as_str());
        }
        let client = channel.client().cloned();
        let record_fields = (client.clone(), request.language, request.claims.clone());
        let default_cause = if channel.has_client() { Cancellation::Client } else { Cancellation::Interrupt };
        let stop = StopHandle::new(cancelled, default_cause);
        let active_run = ActiveRun {
            owner: channel.principal().owner(),
            client,
            language: request.language,
            session: request.session.as_ref().map(|key| key.name.to_string()),
            requested_at: Instant::now(),
            started: progress_requests.started_flag(),
            questions: channel.questions().clone(),
            stop,
            worker: None,
        };
        let mut active_run = self.runs.register(execution, active_run);
        let answer_future = async {
            let mut answer = self.answer(channel, request, progress_requests, &mut active_run).await;
            if matches!(active_run.stop.cause(), Some(Cancellation::Stopped(_))) {
                self.explain_stop(&mut answer);
            }
            tracing::debug!(status = answer.status.as_str(), "a run ended");
            if answer.refusal.is_some() {
                self.record_refusal(&answer, &record_fields);
            }
            answer
        };
        let trace_span = traces::code_run(execution, language);
        let answer = answer_future.instrument(span).instrument(trace_span.clone()).await;
        traces::record_run_status(&trace_span, answer.status.as_str());
        telemetry::count_execution(language, answer.refusal.map_or(answer.status.as_str(), |_| "refused"));
        answer
    }

    async fn answer(
        &self,
        channel: RunChannel,
        request: CodeRequest,
        progress_requests: ProgressRequests,
        active_run: &mut ActiveRunGuard,
    ) -> ExecutionAnswer {
        let (execution, principal) = (channel.execution(), channel.principal());
        let gate = self.gate();
        tokio::select! {
            biased;
            () = gate.wait_for_requirements_look() => {}
            why = active_run.stop.requested(None, principal, &self.lifecycle) => return ExecutionAnswer::cancelled(execution, why),
        }
        drop(gate);
        if let Some(message) = self.stop_message() {
            return ExecutionAnswer::refused(execution, Refusal::Stopped, message.to_string(), HINT);
        }
        let places = match active_run.admit(principal.owner()) {
            Ok(places) => places,
            Err(error) => return quota_answer(execution, error),
        };
        let stop = &active_run.stop;
        let _place = tokio::select! {
            biased;
            place = places.acquire_owned() => place,
            why = stop.requested(None, principal, &self.lifecycle) => return ExecutionAnswer::cancelled(execution, why),
        };
        match self.validate(principal, &request) {
            Ok(scope) => self.run_checked(channel, request, scope, progress_requests, stop).await,
            Err(error) => {
                ExecutionAnswer::refused(execution, Refusal::InvalidRequest, error.to_string(), error.hint())
            }
        }
    }

    fn record_refusal(
        &self,
        answer: &ExecutionAnswer,
        (client, language, claims): &(Option<ClientName>, Language, RequestClaims),
    ) {
        let error = answer.error.as_ref();
        let outcome = error.map_or("refused", |error| error.kind.as_str());
        let reason = error.map_or("", |error| error.message.as_str());
        let execution = answer.execution;
        log_audit_error(self.gate().audit().refused_run(RefusedRun {
            execution,
            client: client.as_ref(),
            language: *language,
            claims,
            outcome,
            reason,
        }));
    }

    fn validate(&self, principal: &Principal, request: &CodeRequest) -> Result<Scope, InvalidRequest> {
        let (bytes, limit) = (request.code.len(), self.settings.code_bytes_max);
        if request.code.trim().is_empty() {
            return Err(InvalidRequest::Empty);
        }
        if bytes > limit {
            return Err(InvalidRequest::TooLong { bytes, limit });
        }
        let granted = self.gate().scope_for(principal);
        match &request.servers {
            None => Ok(granted),
            Some(names) => granted.narrowed_to(names).map_err(InvalidRequest::Servers),
        }
    }

    /// Runs the code of a valid request: acquires a worker, writes the audit record, executes the code and builds the
    /// answer.
    async fn run_checked(
        &self,
        channel: RunChannel,
        request: CodeRequest,
        scope: Scope,
        progress_requests: ProgressRequests,
        stop: &StopHandle,
    ) -> ExecutionAnswer {
        let (execution, principal) = (channel.execution(), channel.principal().clone());
        let AcquiredWorker { worker, session_lease, sandbox } =
            match self.acquire(&principal, &request, stop).await {
                Ok(acquired) => acquired,
                Err(error) => return error.to_answer(execution),
            };
        self.runs.set_worker(execution, worker.pid());
        // The run keeps this configuration until it ends, even if a reload replaces it.
        let gate = self.gate();
        let owner = principal.owner();
        let limits = ExecutionLimits { memory_bytes: worker.memory_bytes(), ..self.limits(&request, owner) };
        let context = self.run_context(&gate, channel, &request, scope);
        record_start(&gate, &context, &request).await;
        let tools = gate.mentioned_tools(&context, &request.code);
        let CodeRequest { code, check_only, output, .. } = request;
        let program = SubmittedProgram { code, check_only, tools, output };
        let stop_requested =
            stop.requested(session_lease.as_ref().map(SessionLease::stop), &principal, &self.lifecycle);
        let result =
            execution::run(worker, program, context, &gate, &limits, progress_requests, stop_requested)
                .instrument(traces::run_stage("run in the worker"))
                .await;
        self.charge(owner, &limits, &result);
        let (wall, cpu, ended_by) = (result.wall, result.cpu, result.end_reason.ended_by());
        let answer = finish_run(execution, result, &limits, session_lease, sandbox);
        let answer_bytes = answer.shown_bytes(self.settings.display);
        let end = ExecutionEnd {
            status: answer.status.as_str(),
            ended_by,
            wall,
            cpu,
            calls: answer.calls.len(),
            answer_bytes,
        };
        log_audit_error(gate.audit().end(execution, end));
        answer
    }

    fn limits(&self, request: &CodeRequest, owner: Owner) -> ExecutionLimits {
        let limits = self.settings.limits;
        let wall = request.timeout.unwrap_or(limits.wall).min(limits.wall);
        let (wall_asked, wall_max) = (request.timeout, limits.wall);
        ExecutionLimits { wall, wall_asked, wall_max, cpu_credit: self.runs.cpu_credit(owner), ..limits }
    }

    /// Returns the context of this run for the gate: who asks, and which servers and tools the run may use.
    fn run_context(
        &self,
        gate: &Gate,
        channel: RunChannel,
        request: &CodeRequest,
        scope: Scope,
    ) -> RunContext {
        let (language, code) = (Some(request.language), request.code.as_str().into());
        let scope = scope.retain_configured(&gate.code_servers());
        let files = RunFiles::new(request.given_files.clone());
        RunContext::new(channel, language, scope, code, self.approvers.clone(), gate.audit())
            .with_files(files)
    }

    /// Deducts the CPU time of a run from the CPU credit of its AI client, if the client has one. Records the duration
    /// of the run in the metrics, and counts the run as killed if its worker was killed.
    fn charge(&self, owner: Owner, limits: &ExecutionLimits, result: &RunResult) {
        telemetry::record_stage(Stage::Run, result.wall);
        if let Some((credit, used)) = limits.cpu_credit.zip(result.cpu) {
            self.runs.charge_cpu(owner, used.min(credit));
        }
        if let Some(reason) = result.end_reason.kill_label() {
            telemetry::count_kill(reason);
        }
    }
}

/// Writes the audit record of a run that is about to start.
async fn record_start(gate: &Gate, context: &RunContext, request: &CodeRequest) {
    let program = Program {
        language: request.language,
        code: &request.code,
        servers: context.scope.servers(),
        session: request.session.as_ref().map(|key| key.name.as_str()),
        policy: gate.policy_digest(),
        claims: &request.claims,
    };
    log_audit_error(gate.audit().execution(context.execution(), context.client(), program).await);
}

/// Releases the session of a run that has one, and builds the answer to the run.
fn finish_run(
    execution: ExecutionId,
    mut result: RunResult,
    limits: &ExecutionLimits,
    session_lease: Option<SessionLease>,
    sandbox: Sandbox,
) -> ExecutionAnswer {
    let session = session_lease
        .map(|session_lease| session_lease.release(result.session_worker.take(), &result.end_reason));
    let mut answer = ExecutionAnswer::new(execution, result, limits, sandbox);
    answer.session = session;
    answer
}

/// Why a request to run code is invalid.
#[derive(Debug, thiserror::Error)]
enum InvalidRequest {
    #[error("the code is empty")]
    Empty,
    #[error("the code has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
    /// The list `servers` of the request has an invalid name, an unknown server, or too many names.
    #[error(transparent)]
    Servers(#[from] ScopeError),
}

impl InvalidRequest {
    fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "send a program; the value of its last expression is the result",
            Self::TooLong { .. } => "read large data through a tool instead of writing it into the code",
            Self::Servers(_) => "omit `servers` to use all of them",
        }
    }
}

fn quota_answer(execution: ExecutionId, error: QuotaExceeded) -> ExecutionAnswer {
    let (reason, hint, retry_after) = match error {
        QuotaExceeded::RateLimit { retry_after } => {
            ("rate", "do more in one program: this limit counts runs, not calls", Some(retry_after))
        }
        QuotaExceeded::TooManyConcurrent { .. } => {
            ("quota", "wait for answers, or combine several programs into one", None)
        }
    };
    telemetry::count_http_refusals(reason, 1);
    ExecutionAnswer::refused(execution, Refusal::RateLimited, error.to_string(), hint)
        .with_retry_after(retry_after)
}
