//! The steps of every call of an upstream server: check, decide, admit (count against the limits), wait for
//! the server, record, send.
//!
//! The order of the steps has three purposes. A call that the policy never permits is denied before its arguments
//! are validated, so that the error reveals nothing about the tool's parameters. No approver is asked about a call
//! with invalid arguments. A call is counted only after it was permitted, and recorded only right before it is sent.
//! [`states`] has a type for each step, so that no step can be skipped.

mod attempt;
mod check;
mod decide;
mod file_path;
mod recheck;
mod record;
mod states;

use std::time::{Duration, Instant};

use lockhouse_base::telemetry;
use lockhouse_catalog::{ShapeObservation, SideEffects};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{CallId, CallOutcome, Failure, FailureCode, Reply};
use lockhouse_upstream::leaves_content_aside;

use super::argument_names::RawArguments;
use super::failures::with_names;
use super::tool_request::{CallRecord, Dispatch, ToolRequest};
use super::{Gate, RunContext};
use attempt::CallAttempt;
use lockhouse_stores::skills::is_skills_server;
use states::{CheckedCall, EarlyEnd, OutgoingCall};

pub(super) use record::RecordedCall;

impl Gate {
    /// Makes a call of an upstream server and records its outcome in the audit log. Returns the reply, and a
    /// record of the call that becomes part of the run's answer to the AI client.
    pub(super) async fn call(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
        arguments: RawArguments,
    ) -> (Reply, CallRecord) {
        let started = Instant::now();
        let observation = run.direct.is_none().then(|| self.observe_shape(request, &arguments)).flatten();
        let reply = match self.try_call(run, call, request, arguments).await {
            // A direct call of an AI client returns the upstream server's own error text.
            Err(failure) if run.direct.is_none() => {
                Err(self.with_suggestion(run, call, request, failure).await)
            }
            reply => reply,
        };
        let outcome = outcome_of(request, &reply);
        let bytes = reply.as_ref().map_or(0, |reply| request.result_bytes(reply.len()));
        let took = started.elapsed();
        let known = self.code_server(&request.server).is_some() || is_skills_server(&request.server);
        telemetry::count_call(known.then_some(request.server.as_str()), outcome.as_str());
        // Calls that were not permitted already have an audit record.
        if !outcome.is_denial() {
            self.record_outcome(run, call, request, outcome, took, bytes);
        }
        if let (Some(observation), Ok(json)) = (observation, &reply) {
            observation.record(json);
        }
        let changes = match &reply {
            Err(failure) if self.has_changed_nothing(request, failure) => SideEffects::None,
            _ => request.changes(),
        };
        let has_content_aside = match &reply {
            Ok(envelope) => leaves_content_aside(envelope),
            Err(failure) => failure.result.is_some(),
        };
        let record = CallRecord::new(request, outcome, took, bytes, changes);
        (reply, CallRecord { has_content_aside, ..record })
    }

    /// Refuses a request of an item that the execution may call with no arguments at all, before any of them are known.
    /// Writes the audit record of the denial.
    pub(super) fn refuse_never_permitted(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
    ) -> Result<(), Failure> {
        let attempt = CallAttempt::new(self, run, call, request);
        let destination = self.destination(run, &request.server)?;
        check::refuse_never_permitted(&attempt, &destination)
            .map_err(|failure| with_names(failure, &request.server, &request.item))
    }

    /// Writes the audit record of a call whose execution ended before the reply arrived. If the call was sent, the
    /// outcome is `unknown`, since the server may have performed the call; otherwise the outcome is `not_sent`. A
    /// call that still waits for approval gets no such record.
    pub fn record_abandoned(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
        took: Duration,
    ) -> CallRecord {
        // A call that waits for approval has not been sent.
        if run.approvals.is_awaiting_approval(call) {
            let outcome = CallOutcome::Failed(FailureCode::ApprovalDeclined);
            return CallRecord::new(request, outcome, took, 0, request.changes());
        }
        let outcome = if request.dispatch().is_some() { CallOutcome::Unknown } else { CallOutcome::NotSent };
        self.record_outcome(run, call, request, outcome, took, 0);
        CallRecord::new(request, outcome, took, 0, request.changes())
    }

    /// Makes a call of an upstream server, and writes no audit record of the outcome. The caller of this function
    /// must write that record.
    pub(super) async fn try_call(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
        arguments: RawArguments,
    ) -> Reply {
        let named = |failure: Failure| with_names(failure, &request.server, &request.item);
        let outgoing = match prepare(CallAttempt::new(self, run, call, request), arguments).await {
            Ok(outgoing) => outgoing,
            Err(EarlyEnd::Answered(reply)) => return Ok(reply),
            Err(EarlyEnd::Failed(failure)) => return Err(named(failure)),
        };
        // Failures of the upstream connection already contain the names of the server and the tool.
        let sent = outgoing.send().await?;
        sent.into_reply().map_err(named)
    }

    /// Whether a failed call has certainly changed nothing: the built-in servers write a file as a whole or not at all.
    /// After a timeout, the file system may still do it.
    fn has_changed_nothing(&self, request: &ToolRequest, failure: &Failure) -> bool {
        let is_built_in = self.is_files_server(&request.server) || is_skills_server(&request.server);
        is_built_in && failure.code != FailureCode::Timeout
    }

    /// Starts to observe the shape (member names and types) of the call's result. Returns `None` if no shape is
    /// learned from this call, for example because the tool declares an output schema.
    fn observe_shape(&self, request: &ToolRequest, arguments: &RawArguments) -> Option<ShapeObservation> {
        let CallTarget::Tool(tool) = &request.item else { return None };
        let connection = self.upstreams.get(&request.server)?;
        connection.shapes.observe(connection.known_catalogue()?.tool(tool)?, &arguments.arguments)
    }

    fn record_outcome(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
        outcome: CallOutcome,
        took: Duration,
        bytes: usize,
    ) {
        if let Err(error) = self.audit.outcome(request.subject(run, call), outcome, took, bytes) {
            tracing::error!("{error}");
        }
    }
}

/// Runs all steps of a call that precede its sending.
async fn prepare(attempt: CallAttempt<'_>, arguments: RawArguments) -> Result<OutgoingCall<'_>, EarlyEnd> {
    let checked = CheckedCall::new(attempt, arguments).await?;
    let decided = checked.decide().await?;
    let admitted = decided.admit()?;
    let ready = admitted.wait_for_server_slot().await?;
    Ok(ready.record()?)
}

/// Returns the outcome of the call for the audit log and the run's answer.
fn outcome_of(request: &ToolRequest, reply: &Reply) -> CallOutcome {
    match reply {
        Err(failure) => CallOutcome::Failed(failure.code),
        Ok(_) if request.dispatch() == Some(Dispatch::Draft) => CallOutcome::Draft,
        Ok(_) => CallOutcome::Ok,
    }
}
