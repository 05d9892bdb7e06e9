//! Checks, right before a call is sent, that the decision to permit it is still valid. While an approver was
//! asked or the server was busy, the tool, the policy or a symbolic link may have changed.

use std::sync::Arc;

use lockhouse_base::own_host;
use lockhouse_catalog::Tool;
use lockhouse_policies::{Decision, PermittedCall};
use lockhouse_protocol::Failure;

use super::attempt::CallAttempt;
use super::decide::Permission;

/// Returns the permitted call for sending. Resolves the symbolic links in its paths again, and fails if the current
/// policy denies the call or requires an approval that the call does not have. Also fails if an approver approved
/// the call and a symbolic link has changed since, because the approver saw the previous target.
pub(super) async fn recheck_permission(
    attempt: &CallAttempt<'_>,
    permission: Permission,
) -> Result<PermittedCall, Failure> {
    let policy = attempt.gate.policy.current();
    if Arc::ptr_eq(&policy, &permission.policy) && permission.links.is_empty() {
        return Ok(permission.into_call());
    }
    let mut again = attempt.bare_call().with_arguments(permission.call().arguments().clone());
    again.definition = permission.definition.clone();
    again.resolved_paths = attempt.gate.resolve_links(attempt.run, &policy, &again).await;
    let is_approved = permission.approval().is_some();
    let leads_elsewhere = !permission.links.is_empty() && again.resolved_paths != permission.links;
    match policy.decide(again) {
        Decision::Deny(denial) => Err(attempt.record_policy_denial(&denial)),
        Decision::Ask(_) if !is_approved => Err(attempt.record_stale_decision(
            "the policy has changed and now requires approval for this call; call again",
        )),
        // The approver saw the previous target of the symbolic link.
        _ if is_approved && leads_elsewhere => Err(attempt.record_stale_decision(
            "a symbolic link in a path of its arguments has changed since the approval; call again",
        )),
        Decision::Ask(_) | Decision::Allow(_) => Ok(permission.into_call()),
    }
}

/// Refuses the call if the tool's definition has changed since the call was permitted. `now` is the current
/// definition; `None` if the server no longer has the tool, or the call is not of a tool.
pub(super) fn refuse_changed_definition(
    attempt: &CallAttempt<'_>,
    permission: &Permission,
    now: Option<&Tool>,
) -> Result<(), Failure> {
    if permission.definition.as_deref() == now.map(|tool| tool.fingerprint.as_str()) {
        return Ok(());
    }
    Err(attempt.record_stale_decision("the tool has changed since this call was decided; call again"))
}

/// Refuses the call if this process was suspended while symbolic links were resolved: the requirements may have changed
/// since the decision was checked, or the other hosts of the cluster may count this one as ended.
pub(super) fn refuse_after_suspension(attempt: &CallAttempt<'_>) -> Result<(), Failure> {
    if !own_host::may_act() {
        return Err(attempt.record_stale_decision(
            "this host has lost its place in the cluster, and makes no further call",
        ));
    }
    match attempt.gate.requirements.is_recent() {
        true => Ok(()),
        false => Err(attempt.record_stale_decision(
            "the administrator's requirements may have changed while this call was checked; call again",
        )),
    }
}
