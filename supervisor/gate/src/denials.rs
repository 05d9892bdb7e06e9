//! Why something may not be used or known of, and the record of that.

use lockhouse_audit::Subject;
use lockhouse_base::telemetry;
use lockhouse_catalog::{Tool, ToolChange};
use lockhouse_policies::{ClientName, Denial, Effect, Item, OnChange, Place};
use lockhouse_protocol::{Failure, FailureCode, ServerName};

use super::failures::failure;
use super::{Gate, Requester};

impl Gate {
    pub(super) fn note_denial(
        &self,
        subject: Subject<'_>,
        decision: Effect,
        reason: &str,
        rule: Option<&Place>,
    ) {
        if decision == Effect::Deny {
            telemetry::decided("deny");
        }
        if let Err(error) = self.audit.denial(subject, decision, reason, rule) {
            tracing::error!("{error}");
        }
    }

    /// What is asked for and lies outside of what the execution was started with.
    pub(super) fn left_out(&self, from: &Requester, server: &ServerName, item: &Item) -> Option<Failure> {
        from.scope.left_out().filter(|_| !from.scope.has(server, item))
    }

    /// Why a permitted tool may not be used or known of, if no person has accepted it as it is and that matters.
    pub(super) fn withheld(&self, from: &Requester, server: &ServerName, tool: &Tool) -> Option<String> {
        let on_change = self.on_change(server, from.client());
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
            "{server}/{tool} {differs}, and on_change is \"{on_change}\" for this server; a person looks at it with \
             `lockhouse server diff {server}`, which prints the `lockhouse server accept` command that accepts it"
        ))
    }

    /// What becomes of a server's tools that no person has accepted as they are: what the policy says, or else the server's
    /// configuration.
    pub(super) fn on_change(&self, server: &ServerName, client: Option<&ClientName>) -> OnChange {
        let configured = || self.upstreams.get(server).map(|connection| connection.on_change);
        self.policy.now().on_change(server, client).or_else(configured).unwrap_or_default()
    }
}

/// The policy's denial, with what to do about it.
pub(super) fn denied(denial: &Denial) -> Failure {
    let hint = if denial.hint.is_empty() { String::new() } else { format!("; {}", denial.hint) };
    failure(FailureCode::Denied, format!("{denial}{hint}"))
}
