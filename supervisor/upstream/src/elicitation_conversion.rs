//! Elicitation by upstream servers: the client capabilities that Lockhouse announces, and the conversion of users'
//! answers to MCP results.

use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability,
    UrlElicitationCapability,
};

use lockhouse_messages::Answer;

/// Returns the client capabilities that Lockhouse announces to upstream servers: elicitation by form and by URL. Many
/// AI clients share a connection, so the `initialize` handshake of older protocol versions announces these capabilities
/// for all of them. From version 2026-07-28 on, each request announces the capabilities of the AI client that it comes
/// from.
pub(super) fn capabilities() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::new())
        .with_url(UrlElicitationCapability::new());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities
}

/// Converts the user's answer to a question into an MCP elicitation result. An answer that came too late or was
/// malformed becomes `cancel`.
pub(super) fn result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(Some(content)) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
        Answer::Cancel | Answer::TimedOut | Answer::Malformed => ElicitResult::new(ElicitationAction::Cancel),
    }
}
