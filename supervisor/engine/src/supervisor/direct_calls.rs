//! Direct calls: calls that an AI client makes itself, without code, to an upstream server. Each direct call is an
//! execution of its own.

use std::sync::Arc;
use std::time::Instant;

use lockhouse_gate::{Entries, Gate, RunContext, ToolRequest};
use lockhouse_policies::Listing;
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use lockhouse_run_channel::RunChannel;
use lockhouse_upstream::{DirectFailure, DirectRequest};
use tokio_util::sync::CancellationToken;

use super::Supervisor;

/// The outcome of a direct call.
#[derive(Debug)]
pub enum DirectCallOutcome {
    /// The result of the call, as raw JSON from the upstream server.
    Result(Vec<u8>),
    /// The error with which the upstream server answered.
    ServerError(DirectFailure),
    /// Lockhouse did not make the call, or got no answer from the upstream server.
    Failure(Failure),
}

impl Supervisor {
    /// Makes one direct call of an AI client to an upstream server. Policy, approval and audit are the same as for
    /// calls from code. `asked` names the called tool, resource or prompt, and `request` says which kind of request the
    /// server gets.
    pub async fn call_directly(
        &self,
        channel: RunChannel,
        request: DirectRequest,
        asked: ToolRequest,
        arguments: Vec<u8>,
        cancelled: &CancellationToken,
    ) -> DirectCallOutcome {
        let (gate, request) = (self.gate(), Arc::new(request));
        let context = self.direct_context(&gate, channel).with_direct_request(request.clone());
        let started = Instant::now();
        let reply = tokio::select! {
            // The approver of a pending question would approve a call that is not made.
            biased;
            message = self.stopped() => {
                context.approvals.cancel();
                gate.abandon_direct_call(&context, &asked, started.elapsed());
                Err(stopped_failure(&message))
            }
            reply = gate.call_directly(&context, &asked, arguments) => reply,
            () = cancelled_or_revoked(&context, cancelled) => {
                gate.abandon_direct_call(&context, &asked, started.elapsed());
                Err(cancelled_failure())
            }
        };
        match reply {
            Ok(result) => DirectCallOutcome::Result(result),
            Err(failure) => request
                .take_failure()
                .map_or(DirectCallOutcome::Failure(failure), DirectCallOutcome::ServerError),
        }
    }

    /// Lists those resources or prompts of an upstream server that the AI client may see. Returns `None` if the
    /// server does not answer.
    pub async fn list_directly(
        &self,
        channel: RunChannel,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Entries> {
        let gate = self.gate();
        let context = self.direct_context(&gate, channel);
        gate.list_directly(&context, server, listing).await
    }

    fn direct_context(&self, gate: &Gate, channel: RunChannel) -> RunContext {
        let scope = gate.direct_scope(channel.principal());
        RunContext::new(channel, None, scope, "".into(), self.approvers.clone(), gate.audit())
    }
}

/// Waits until nobody needs the answer to a direct call any more: the AI client cancelled the call, or the client's
/// token was revoked. An unanswered approval question of the call counts as a refusal after a cancellation, but not
/// after a revocation.
async fn cancelled_or_revoked(context: &RunContext, cancelled: &CancellationToken) {
    tokio::select! {
        () = cancelled.cancelled() => {}
        () = context.principal().revoked() => context.approvals.cancel(),
    }
}

/// Returns the failure of a call that is not made because the administrator has stopped Lockhouse.
pub(crate) fn stopped_failure(message: &str) -> Failure {
    Failure::new(FailureCode::Denied, message.to_owned())
}

fn cancelled_failure() -> Failure {
    Failure::new(FailureCode::UpstreamUnavailable, "the AI client cancelled the call".to_owned())
}
