//! Decides whether one call is permitted. The policy decides; if it requires approval, an approver does.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_catalog::Tool;
use lockhouse_policies::{Call, Decision, Effect, PermittedCall, Policy, ResolvedPaths};
use lockhouse_protocol::{Failure, FailureCode, Reply};
use serde_json::{Map, Value};

use super::attempt::CallAttempt;
use crate::skill_requests::save_draft;
use crate::tool_request::Dispatch;
use lockhouse_messages::Approval;
use lockhouse_stores::skills::Skills;

/// A permitted call, with the policy, tool definition and resolved paths on which the decision was based.
pub(super) struct Permission {
    call: PermittedCall,
    /// The policy that decided about the call.
    pub(super) policy: Arc<Policy>,
    /// The fingerprint (hash) of the called tool's definition; `None` if the call is not of a tool.
    pub(super) definition: Option<String>,
    /// The paths in the call's arguments and in policy rules on which the decision depends. Each is stored with
    /// its symbolic links resolved.
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

    /// Returns the scope of the approval, such as once or for this execution. `None` if the policy allows the call
    /// without approval.
    pub(super) fn approval(&self) -> Option<Approval> {
        self.approval
    }
}

/// Why a call is not permitted.
pub(super) enum PermissionError {
    /// The policy denies the call. The audit log already has a record of this denial.
    Denied(Failure),
    /// An approver declined the call, or must not be asked again.
    Declined(Failure),
    /// The call requires approval, and no approver is available.
    NobodyToAsk(Failure),
}

impl PermissionError {
    /// Writes the audit record of the refusal, unless it is already written, and returns the failure for the
    /// caller.
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

/// Decides about a call, and asks an approver if the policy requires it. `tool` is the definition of the called tool;
/// `None` if the call is not of a tool.
pub(super) async fn decide_permission(
    attempt: &CallAttempt<'_>,
    mut call: Call,
    tool: Option<&Tool>,
) -> Result<Permission, PermissionError> {
    let CallAttempt { gate, run, .. } = attempt;
    let policy = gate.policy.current();
    call.resolved_paths = gate.resolve_links(run, &policy, &call).await;
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
            let undescribed = attempt.request.content().map_or(0, |content| content.undescribed_bytes);
            let asked =
                run.approvals.ask(subject.call, subject.id, pending, subject.line, undescribed, tool).await;
            let (permitted, approval) = asked.map_err(|refused| match refused.no_approver {
                true => PermissionError::NobodyToAsk(refused.failure),
                false => PermissionError::Declined(refused.failure),
            })?;
            (permitted, Some(approval))
        }
    };
    Ok(Permission { call, policy, definition, links, approval })
}

/// Stores the skill in the arguments of `skills.save` as a draft, because saving it requires approval and no
/// approver is available. Fails if the audit record or the draft cannot be written.
pub(super) async fn store_draft(
    attempt: &CallAttempt<'_>,
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
) -> Reply {
    let reason = "a person must approve it, and there is nobody to ask: it is kept as a draft";
    attempt.gate.audit.denial(attempt.subject(), Effect::Ask, reason, None).map_err(|error| {
        tracing::error!("{error}");
        Failure::new(FailureCode::Denied, format!("the skill was not kept: {error}"))
    })?;
    attempt.request.record_dispatch(Dispatch::Draft);
    save_draft(skills, arguments).await
}
