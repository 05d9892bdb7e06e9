//! Decides about one call: by the policy, or by an approver if the policy requires approval.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_catalog::Tool;
use lockhouse_policies::{Call, Decision, Effect, PermittedCall, Policy, ResolvedPaths};
use lockhouse_protocol::{Failure, FailureCode, Reply};
use serde_json::{Map, Value};

use super::attempt::CallAttempt;
use crate::approvals::Approval;
use crate::failures::failure;
use crate::skill_requests::save_draft;
use crate::skills::Skills;
use crate::symlinks;
use crate::tool_request::Dispatch;

/// A permitted call, and the facts that the decision was based on.
pub(super) struct Permission {
    call: PermittedCall,
    pub(super) policy: Arc<Policy>,
    /// Fingerprint of the tool's definition.
    pub(super) definition: Option<String>,
    /// Symbolic links resolved in path arguments.
    pub(super) links: ResolvedPaths,
    approval: Option<Approval>,
}

impl Permission {
    pub(super) fn call(&self) -> &PermittedCall {
        &self.call
    }

    pub(super) fn into_call(self) -> PermittedCall {
        self.call
    }

    /// The scope of the approval; `None` if the policy allows the call.
    pub(super) fn approval(&self) -> Option<Approval> {
        self.approval
    }
}

/// Why a call is not permitted.
pub(super) enum PermissionError {
    /// Denied by the policy; already recorded in the audit log.
    Denied(Failure),
    /// An approver declined, or may not be asked again.
    Declined(Failure),
    /// The call requires approval, and no approver is available.
    NobodyToAsk(Failure),
}

impl PermissionError {
    /// Records the refusal, if it is not recorded yet, and returns the failure.
    pub(super) fn into_recorded_failure(self, attempt: &CallAttempt<'_>) -> Failure {
        match self {
            Self::Denied(denied) => denied,
            Self::Declined(declined) | Self::NobodyToAsk(declined) => {
                attempt.gate.record_denial(attempt.subject(), Effect::Ask, &declined.message, None);
                declined
            }
        }
    }
}

/// Decides about a call; `tool` is its definition if it calls a tool.
pub(super) async fn decide_permission(
    attempt: &CallAttempt<'_>,
    mut call: Call,
    tool: Option<&Tool>,
) -> Result<Permission, PermissionError> {
    let CallAttempt { gate, requester, .. } = attempt;
    let policy = gate.policy.current();
    call.resolved_paths =
        symlinks::resolve_in_background(policy.paths_to_resolve(&call), &requester.usage.slow_check_slot)
            .await;
    let (definition, links) = (call.definition.clone(), call.resolved_paths.clone());
    let (call, approval) = match policy.decide(call) {
        Decision::Allow(permitted) => {
            telemetry::count_decision("allow");
            (permitted, None)
        }
        Decision::Deny(denial) => return Err(PermissionError::Denied(attempt.record_policy_denial(&denial))),
        Decision::Ask(pending) => {
            telemetry::count_decision("ask");
            let subject = attempt.subject();
            let asked =
                requester.approvals.ask((subject.call, subject.id), pending, subject.line, tool).await;
            let (permitted, approval) = asked.map_err(|refused| match refused.no_approver {
                true => PermissionError::NobodyToAsk(refused.failure),
                false => PermissionError::Declined(refused.failure),
            })?;
            (permitted, Some(approval))
        }
    };
    Ok(Permission { call, policy, definition, links, approval })
}

/// Stores a skill as a draft when no approver is available. Fails if the audit record cannot be written.
pub(super) async fn store_draft(
    attempt: &CallAttempt<'_>,
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
) -> Reply {
    let reason = "a person must approve it, and there is nobody to ask: it is kept as a draft";
    attempt.gate.audit.denial(attempt.subject(), Effect::Ask, reason, None).map_err(|error| {
        tracing::error!("{error}");
        failure(FailureCode::Denied, format!("the skill was not kept: {error}"))
    })?;
    attempt.request.record_dispatch(Dispatch::Draft);
    save_draft(skills, arguments).await
}
