//! One call that a person decides about.

use lockhouse_catalog::Claims;
use lockhouse_policies::{CallDigest, Item, PendingCall, PermittedCall};
use lockhouse_protocol::{CallId, ExecutionId, ServerName};
use uuid::Uuid;

use super::order::Order;
use super::outcome::Refusal;
use super::visible::{quoted, width};

/// Characters of a URI or a prompt's name beside other calls; what has more is asked about alone. A tool's name always fits.
const NAME_CHARS_MAX: usize = 300;

/// A server, and what is asked of it.
pub(super) type Tool = (ServerName, String);

/// One call that a person decides about.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) pending: PendingCall,
    pub(super) line: Option<u32>,
    pub(super) claims: Claims,
    /// Of its arguments.
    pub(super) order: Order,
    /// What a person would not see of it however much room it has, if that is required.
    pub(super) hidden: Option<String>,
    /// Characters that its arguments need in a table.
    pub(super) room_needed: usize,
    /// Of this call on this occasion.
    pub(super) digest: CallDigest,
    pub(super) call: CallId,
    /// As the log names it.
    pub(super) id: Uuid,
    occasion: String,
}

impl Candidate {
    pub(super) fn new(
        (execution, call, id): (ExecutionId, CallId, Uuid),
        pending: PendingCall,
        line: Option<u32>,
        claims: Claims,
        order: Order,
    ) -> Self {
        let occasion = format!("{execution}/{}", call.0);
        let digest = pending.digest(&occasion);
        let hidden = order.hidden(pending.arguments());
        let room_needed = order.room_needed(pending.arguments());
        Self { pending, line, claims, order, hidden, room_needed, digest, call, id, occasion }
    }

    /// Whether it is too important or its name too long for one row of a table.
    pub(super) fn stands_alone(&self) -> bool {
        self.order.stands_alone() || has_long_name(self.pending.item())
    }

    /// What refusals of it are counted for: its tool, or its server's resources or prompts, which are whatever the program
    /// names.
    pub(super) fn tool(&self) -> Tool {
        let item = self.pending.item();
        let name = if item.kind() == "tool" { item.to_string() } else { format!("any {}", item.kind()) };
        (self.pending.server().clone(), name)
    }

    /// The call as it was shown, or one that was approved before it was asked about.
    pub(super) fn approved(self) -> Result<PermittedCall, Refusal> {
        self.pending.approved(&self.occasion, self.digest).map_err(|_| Refusal::Broken)
    }
}

/// Whether a call is asked about alone since what it names is too long for one row of a table.
fn has_long_name(item: &Item) -> bool {
    width(item.as_str(), NAME_CHARS_MAX, quoted) > NAME_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ResourceUri;

    use super::*;

    #[test]
    fn a_name_that_is_too_long_for_a_row_is_asked_about_alone() {
        let uri = |length| Item::Resource(ResourceUri::new("u".repeat(length)).expect("a URI"));
        assert!(!has_long_name(&uri(NAME_CHARS_MAX)) && has_long_name(&uri(NAME_CHARS_MAX + 1)));
    }
}
