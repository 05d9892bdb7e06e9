//! What a person has approved for the rest of an execution.

use lockhouse_policies::{Item, PendingCall, Place};
use lockhouse_protocol::ServerName;

use super::Approval;

/// Answers of a wider scope than one prompt.
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

#[derive(Debug, PartialEq)]
struct Grant {
    server: ServerName,
    item: Item,
    /// The line of the policy that was changed. The execution keeps the policy with which it began, so this stands for
    /// the change; calls that another line leaves to a person are not meant by it.
    changed: Option<Place>,
}

impl Grants {
    /// Remembers what an answer of this scope means for calls like this one.
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

    /// Which answer from before counts for this call.
    pub(super) fn find(&self, call: &PendingCall) -> Option<Approval> {
        let mut alike =
            self.0.iter().filter(|grant| grant.server == *call.server() && grant.item == *call.item());
        alike.find_map(|grant| match &grant.changed {
            None => Some(Approval::Execution),
            Some(place) => (place == call.rule()).then_some(Approval::Always),
        })
    }
}
