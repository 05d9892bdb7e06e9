//! A call that requires approval, with the data that a prompt needs to display the call.

use lockhouse_catalog::{Tool, ToolHints};
use lockhouse_policies::{CallDigest, CallTarget, PendingCall, PermittedCall};
use lockhouse_protocol::{CallId, ExecutionId, ServerName};
use uuid::Uuid;

use super::argument_order::ArgumentOrder;
use super::outcome::ApprovalRefusal;
use super::untrusted_text::{push_json_escaped, rendered_chars};

/// Maximum number of characters of a resource URI or prompt name in an approval prompt for several calls. A
/// call with a longer name gets an approval prompt of its own. Tool names are always shorter.
const NAME_CHARS_MAX: usize = 300;

/// The key under which refusals are counted: the server, and the tool or the kind of the called item.
pub(super) type RefusalKey = (ServerName, String);

/// A call that requires approval.
#[derive(Debug)]
pub(super) struct ApprovalRequest {
    pub(super) pending: PendingCall,
    /// The line of the program that makes the call, as reported by the worker. `None` if the worker reported none.
    pub(super) line: Option<u32>,
    /// What the upstream server claims about the effects of the tool (MCP annotations).
    pub(super) claims: ToolHints,
    /// The order in which the arguments are displayed.
    pub(super) order: ArgumentOrder,
    /// Describes the required arguments that an approval prompt for this call alone would be too small to show;
    /// `None` if all of them can be shown.
    pub(super) hidden: Option<String>,
    /// Number of characters that the arguments need in an approval prompt for several calls.
    pub(super) chars_needed: usize,
    /// Number of bytes of a file's content that the arguments cover only by a hash.
    pub(super) undescribed_bytes: u64,
    /// The digest of the call with its arguments and `occasion`. An answer approves the call only if it names this
    /// digest.
    pub(super) digest: CallDigest,
    pub(super) call: CallId,
    /// The id of the call in the audit log.
    pub(super) id: Uuid,
    /// The execution id and the call number. They are part of the digest, so that an equal call in another
    /// execution has a different digest.
    occasion: String,
}

impl ApprovalRequest {
    pub(super) fn new(
        execution: ExecutionId,
        call: CallId,
        id: Uuid,
        pending: PendingCall,
        line: Option<u32>,
        undescribed_bytes: u64,
        tool: Option<&Tool>,
    ) -> Self {
        let claims = tool.map(Tool::hints).unwrap_or_default();
        let order = ArgumentOrder::for_call(&pending, tool);
        let occasion = format!("{execution}/{}", call.0);
        let digest = pending.digest(&occasion);
        let (hidden, chars_needed) = {
            let sent = pending.everything_sent();
            (order.hidden_required_text(&sent), order.chars_needed(&sent))
        };
        Self {
            pending,
            line,
            claims,
            order,
            hidden,
            chars_needed,
            undescribed_bytes,
            digest,
            call,
            id,
            occasion,
        }
    }

    /// Whether the call cannot share an approval prompt with other calls, because it contains code (of a skill), the
    /// content of a file that cannot be shown as a whole, or a long name.
    pub(super) fn needs_own_prompt(&self) -> bool {
        self.order.needs_own_prompt() || self.undescribed_bytes > 0 || has_long_name(self.pending.item())
    }

    /// Returns the key under which refusals of this call are counted. The key of a tool call names the tool. The key of
    /// a resource or prompt names only this kind of item, because the program chooses the names of the items.
    pub(super) fn refusal_key(&self) -> RefusalKey {
        let item = self.pending.item();
        let name = if item.kind() == "tool" { item.to_string() } else { format!("any {}", item.kind()) };
        (self.pending.server().clone(), name)
    }

    /// Converts the approved request into a permitted call. Fails if the field `digest` is not the digest of the call.
    pub(super) fn into_permitted(self) -> Result<PermittedCall, ApprovalRefusal> {
        self.pending.approve(&self.occasion, self.digest).map_err(|_| ApprovalRefusal::Broken)
    }
}

/// Whether the name of a called item is too long for a row of an approval prompt that lists several calls.
fn has_long_name(item: &CallTarget) -> bool {
    rendered_chars(item.as_str(), NAME_CHARS_MAX, push_json_escaped) > NAME_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ResourceUri;

    use super::*;

    #[test]
    fn a_call_with_a_long_name_gets_its_own_prompt() {
        let uri = |length| CallTarget::Resource(ResourceUri::new("u".repeat(length)).expect("a URI"));
        assert!(!has_long_name(&uri(NAME_CHARS_MAX)) && has_long_name(&uri(NAME_CHARS_MAX + 1)));
    }
}
