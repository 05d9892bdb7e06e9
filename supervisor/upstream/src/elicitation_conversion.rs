//! Converts questions to users to and from MCP: the announced capabilities and the results.

use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability,
    UrlElicitationCapability,
};

use crate::ai_client::Answer;

/// Returns the client capabilities that are announced to servers. Connections are shared and outlive AI clients, so the
/// older handshake always announces elicitation; in the newer protocol each request has its own capabilities.
pub(super) fn capabilities() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::new())
        .with_url(UrlElicitationCapability::new());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities
}

/// Converts the user's answer to a question into an MCP elicitation result.
pub(super) fn result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(Some(content)) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
        Answer::Cancel | Answer::TimedOut | Answer::Malformed => ElicitResult::new(ElicitationAction::Cancel),
    }
}
