//! What a decision rests on, looked at again once the call could go out: while a person was asked or the server was busy,
//! the tool may have changed, another policy may have come into force, and a link may lead elsewhere.

use std::sync::Arc;

use lockhouse_catalog::Tool;
use lockhouse_policies::{Decision, PermittedCall};
use lockhouse_protocol::Failure;

use super::attempt::Attempt;
use super::decide::Permission;
use crate::links;

/// The call, unless the newest policy or the place of a path speaks against it.
pub(super) async fn still_permitted(
    attempt: &Attempt<'_>,
    permission: Permission,
) -> Result<PermittedCall, Failure> {
    let policy = attempt.gate.policy.now();
    if Arc::ptr_eq(&policy, &permission.policy) && permission.links.is_empty() {
        return Ok(permission.into_call());
    }
    let mut again = attempt.bare_call().with_arguments(permission.call().arguments().clone());
    again.definition = permission.definition.clone();
    again.links = links::resolved(policy.paths(&again), &attempt.from.usage.turn).await;
    let is_approved = permission.approval().is_some();
    let leads_elsewhere = !permission.links.is_empty() && again.links != permission.links;
    match policy.decide(again) {
        Decision::Deny(denial) => Err(attempt.deny(&denial)),
        Decision::Ask(_) if !is_approved => {
            Err(attempt.outdated("by now the policy leaves this call to a person; call again"))
        }
        // What a person has read was said of another place.
        _ if is_approved && leads_elsewhere => {
            Err(attempt
                .outdated("a path in its arguments leads elsewhere than when it was approved; call again"))
        }
        Decision::Ask(_) | Decision::Allow(_) => Ok(permission.into_call()),
    }
}

/// Refuses a tool that is not the one any more that was decided about.
pub(super) fn refuse_another_tool(
    attempt: &Attempt<'_>,
    permission: &Permission,
    now: Option<&Tool>,
) -> Result<(), Failure> {
    if permission.definition.as_deref() == now.map(|tool| tool.fingerprint.as_str()) {
        return Ok(());
    }
    Err(attempt.outdated("the tool has changed since this call was decided; call again"))
}
