//! Earlier approvals that cover later calls of the same execution.

use lockhouse_policies::{CallTarget, PendingCall, SourceLocation};
use lockhouse_protocol::ServerName;

use super::Approval;

/// The approvals of one execution that cover further calls, beyond those shown in their prompt.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

/// An approval of all calls of one tool, resource or prompt in an execution.
#[derive(Debug, PartialEq)]
struct Grant {
    server: ServerName,
    item: CallTarget,
    /// For the scope `always`: the place of the policy rule that the answer changed. The grant covers only calls
    /// for which this rule requires approval, because the running execution keeps its initial policy. `None` for
    /// the scope `execution`.
    changed: Option<SourceLocation>,
}

impl Grants {
    /// Records the approval of this call as a grant, if its scope covers later calls.
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

    /// Returns the scope of the earlier approval that covers this call; `None` if none does.
    pub(super) fn approval_for(&self, call: &PendingCall) -> Option<Approval> {
        let mut alike =
            self.0.iter().filter(|grant| grant.server == *call.server() && grant.item == *call.item());
        alike.find_map(|grant| match &grant.changed {
            None => Some(Approval::Execution),
            Some(place) => (place == call.rule()).then_some(Approval::Always),
        })
    }
}
