//! Earlier approvals that cover later calls of the same execution.

use lockhouse_policies::{CallTarget, PendingCall, SourceLocation};
use lockhouse_protocol::ServerName;

use super::{Approval, Presence, presence};

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
    /// What the approval has proven. It covers no call that requires more.
    presence: Presence,
}

impl Grants {
    /// Records the approval of this call as a grant, if `scope` covers later calls. `presence` is what it has proven.
    pub(super) fn add(&mut self, scope: Approval, call: &PendingCall, presence: Presence) {
        let changed = match scope {
            Approval::Once => return,
            Approval::Execution => None,
            Approval::Always => Some(call.rule().clone()),
        };
        let grant = Grant { server: call.server().clone(), item: call.item().clone(), changed, presence };
        if !self.0.contains(&grant) {
            self.0.push(grant);
        }
    }

    /// Returns the scope of the earlier approval that covers this call; `None` if no approval covers the call.
    pub(super) fn approval_for(&self, call: &PendingCall) -> Option<Approval> {
        let required = presence::required_by_rules(call);
        let is_alike = |grant: &&Grant| {
            grant.server == *call.server() && grant.item == *call.item() && grant.presence >= required
        };
        let mut alike = self.0.iter().filter(is_alike);
        alike.find_map(|grant| match &grant.changed {
            None => Some(Approval::Execution),
            Some(place) => (place == call.rule()).then_some(Approval::Always),
        })
    }
}
