//! The messages that explain why calls are denied, and the audit records of denials.

use lockhouse_audit::CallSubject;
use lockhouse_base::telemetry;
use lockhouse_catalog::{Tool, ToolChange};
use lockhouse_policies::{CallTarget, ClientName, Denial, Effect, OnChange, SourceLocation};
use lockhouse_protocol::{Failure, FailureCode, ServerName};

use super::{Gate, RunContext};

impl Gate {
    /// Writes the audit record of a denial. `decision` is `Ask` if an approver declined the call or none was available.
    pub(super) fn record_denial(
        &self,
        subject: CallSubject<'_>,
        decision: Effect,
        reason: &str,
        rule: Option<&SourceLocation>,
    ) {
        if decision == Effect::Deny {
            telemetry::count_decision("deny");
        }
        if let Err(error) = self.audit.denial(subject, decision, reason, rule) {
            tracing::error!("{error}");
        }
    }

    /// Returns the failure for a tool, resource or prompt outside of the execution's scope (the servers and tools
    /// that the request or the client's token allows). Returns `None` if the item is in the scope.
    pub(super) fn out_of_scope_failure(
        &self,
        run: &RunContext,
        server: &ServerName,
        item: &CallTarget,
    ) -> Option<Failure> {
        run.scope.out_of_scope_failure().filter(|_| !run.scope.contains(server, item))
    }

    /// Returns why a tool must not be called although the policy permits it: its definition is new or changed,
    /// and no person has accepted it. Returns `None` if the tool may be called.
    pub(super) fn unaccepted_tool_reason(
        &self,
        run: &RunContext,
        server: &ServerName,
        tool: &Tool,
    ) -> Option<String> {
        let on_change = self.on_change(server, run.client());
        if on_change == OnChange::Warn {
            return None;
        }
        let differs = match tool.change? {
            ToolChange::Definition => "has changed since its definition was accepted",
            ToolChange::New => "is new: it was not among the tools of this server that were accepted",
            ToolChange::NotComparable => {
                "cannot be compared with what was accepted: the pinned definitions cannot be read or written"
            }
        };
        let (tool, on_change) = (&tool.name, on_change.as_str());
        Some(format!(
            "{server}/{tool} {differs}, and on_change is \"{on_change}\" for this server; review it with \
             `lockhouse server diff {server}`, which prints the `lockhouse server accept` command that accepts it"
        ))
    }

    /// Returns the setting that determines what happens to calls of tools whose definition is new or changed and
    /// was not accepted: that of the policy if it has one, otherwise that of the server's configuration.
    pub(super) fn on_change(&self, server: &ServerName, client: Option<&ClientName>) -> OnChange {
        let configured = || self.upstreams.get(server).map(|connection| connection.on_change);
        self.policy.current().on_change(server, client).or_else(configured).unwrap_or_default()
    }
}

/// Returns the failure that the caller gets for a denial by the policy, with a hint about what the user can do.
pub(super) fn denial_failure(denial: &Denial) -> Failure {
    let hint = if denial.hint.is_empty() { String::new() } else { format!("; {}", denial.hint) };
    Failure::new(FailureCode::Denied, format!("{denial}{hint}"))
}
