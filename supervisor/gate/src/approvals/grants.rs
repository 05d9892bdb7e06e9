//! Approvals that cover later calls of the same execution.

use lockhouse_policies::{CallTarget, PendingCall, SourceLocation};
use lockhouse_protocol::ServerName;

use super::Approval;

/// Approvals with a scope wider than one prompt.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

#[derive(Debug, PartialEq)]
struct Grant {
    server: ServerName,
    item: CallTarget,
    /// The policy rule that an `always` answer changed. The execution keeps its initial policy, so this grant takes the
    /// place of the change; calls that another rule marks `ask` are not covered.
    changed: Option<SourceLocation>,
}

impl Grants {
    /// Records what an approval of this scope grants for calls like this one.
    pub(super) fn add(&mut self, scope: Approval, call: &PendingCall) {
        let changed = match scope {
            Approval::Once => return,
            Approval::Execution => None,
            Approval::Always => Some(call.rule().clone()),
        };
        let grant = Grant { server: call.server().clone(), item: call.item().clone(), changed };
        if !self.0.contains(&grant) {
            self.0.push(grant);
        }
    }

    /// Returns the earlier approval that covers this call, if any.
    pub(super) fn approval_for(&self, call: &PendingCall) -> Option<Approval> {
        let mut alike =
            self.0.iter().filter(|grant| grant.server == *call.server() && grant.item == *call.item());
        alike.find_map(|grant| match &grant.changed {
            None => Some(Approval::Execution),
            Some(place) => (place == call.rule()).then_some(Approval::Always),
        })
    }
}
