//! The context shared by all steps of one call.

use std::time::{Duration, Instant};

use lockhouse_audit::CallSubject;
use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::{Call, CallTarget, Denial, Effect};
use lockhouse_protocol::{CallId, Failure, FailureCode, ServerName};

use crate::denials::denial_failure;
use crate::tool_request::ToolRequest;
use crate::{Gate, RunContext};

/// A call in progress: what is called, for whom, since when, and how much of this time was spent waiting for the
/// upstream server.
pub(super) struct CallAttempt<'a> {
    pub(super) gate: &'a Gate,
    pub(super) run: &'a RunContext,
    pub(super) request: &'a ToolRequest,
    /// The number of the call within its execution.
    id: CallId,
    /// When the supervisor received the request for the call.
    began: Instant,
    /// The time that the call has waited for the upstream server so far.
    waited: Duration,
}

impl<'a> CallAttempt<'a> {
    pub(super) fn new(gate: &'a Gate, run: &'a RunContext, id: CallId, request: &'a ToolRequest) -> Self {
        Self { gate, run, request, id, began: Instant::now(), waited: Duration::ZERO }
    }

    pub(super) fn server(&self) -> &'a ServerName {
        &self.request.server
    }

    pub(super) fn item(&self) -> &'a CallTarget {
        &self.request.item
    }

    /// Returns the data that identify the call in audit records.
    pub(super) fn subject(&self) -> CallSubject<'a> {
        self.request.subject(self.run, self.id)
    }

    /// Returns the call without its arguments, in the form in which the policy evaluates calls.
    pub(super) fn bare_call(&self) -> Call {
        Call::new(self.server(), self.item().clone()).with_client(self.run.client().cloned())
    }

    /// Returns the called tool from this catalogue. `None` if the catalogue does not have the tool, or the call is not
    /// of a tool.
    pub(super) fn tool_in<'c>(&self, catalogue: &'c Catalogue) -> Option<&'c Tool> {
        match self.item() {
            CallTarget::Tool(tool) => catalogue.tool(tool),
            CallTarget::Resource(_) | CallTarget::Prompt(_) | CallTarget::List(_) => None,
        }
    }

    /// Awaits a future that depends on the upstream server, and measures the waiting time. [`Self::gate_time`]
    /// excludes this time.
    pub(super) async fn wait_for_server<T>(&mut self, server: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let result = server.await;
        self.waited += since.elapsed();
        result
    }

    /// Returns the time since the request for the call arrived, minus the time spent waiting for the upstream
    /// server.
    pub(super) fn gate_time(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited)
    }

    /// Writes the audit record of a denial by the policy, and returns the failure for the caller.
    pub(super) fn record_policy_denial(&self, denial: &Denial) -> Failure {
        let reason = denial.to_string();
        self.gate.record_denial(self.subject(), Effect::Deny, &reason, denial.location.as_ref());
        denial_failure(denial)
    }

    /// Writes the audit record of a denial of a call whose earlier permission is no longer valid, for example
    /// because the policy has changed. Returns a retryable failure for the caller.
    pub(super) fn record_stale_decision(&self, reason: &str) -> Failure {
        self.gate.record_denial(self.subject(), Effect::Deny, reason, None);
        Failure { retryable: true, ..Failure::new(FailureCode::Denied, reason.into()) }
    }

    /// Refuses the call if the tool's definition is new or changed, no person has accepted it, and the effective
    /// `on_change` setting requires acceptance.
    pub(super) fn refuse_unaccepted_tool(&self, tool: &Tool) -> Result<(), Failure> {
        let Some(reason) = self.gate.unaccepted_tool_reason(self.run, self.server(), tool) else {
            return Ok(());
        };
        self.gate.record_denial(self.subject(), Effect::Deny, &reason, None);
        Err(Failure::new(FailureCode::Denied, reason))
    }
}
