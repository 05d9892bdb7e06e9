//! Earlier approvals that cover later calls of the same execution.

use lockhouse_policies::{ApprovalRequirement, CallTarget, PendingCall, SourceLocation};
use lockhouse_protocol::ServerName;

use super::Approval;

/// The approvals of one execution that also cover later calls, which their prompts did not show.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

/// An approval of all calls of one tool, resource or prompt in an execution.
#[derive(Debug, PartialEq)]
struct Grant {
    server: ServerName,
    item: CallTarget,
    /// The place of the policy rule that an approval with the scope `always` has changed; `None` for the scope
    /// `execution`. The running execution keeps its initial policy, in which the rule still requires approval. The
    /// grant therefore covers later calls for which this rule requires approval, and no other calls.
    changed: Option<SourceLocation>,
    /// What the approval satisfies. It covers no call that requires more.
    satisfied: ApprovalRequirement,
}

impl Grants {
    /// Records the approval of this call as a grant, if `scope` covers later calls. `satisfied` is what
    /// its approval satisfies.
    pub(super) fn add(&mut self, scope: Approval, call: &PendingCall, satisfied: ApprovalRequirement) {
        let changed = match scope {
            Approval::Once => return,
            Approval::Execution => None,
            Approval::Always => Some(call.rule().clone()),
        };
        let grant = Grant { server: call.server().clone(), item: call.item().clone(), changed, satisfied };
        if !self.0.contains(&grant) {
            self.0.push(grant);
        }
    }

    /// Returns the scope of the earlier approval that covers this call; `None` if no approval covers the call.
    pub(super) fn approval_for(&self, call: &PendingCall) -> Option<Approval> {
        // The time for an answer is over with the answer.
        let required = ApprovalRequirement { expires_seconds: None, ..call.requirement() };
        let is_alike = |grant: &&Grant| {
            let covers = grant.satisfied.and(required) == grant.satisfied;
            grant.server == *call.server() && grant.item == *call.item() && covers
        };
        let mut alike = self.0.iter().filter(is_alike);
        alike.find_map(|grant| match &grant.changed {
            None => Some(Approval::Execution),
            Some(place) => (place == call.rule()).then_some(Approval::Always),
        })
    }
}
