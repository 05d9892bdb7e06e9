//! Questions to a person in the terms of MCP: what a server is told that it may ask, and how an answer goes back.

use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability,
    UrlElicitationCapability,
};

use crate::ai_client::Answer;

/// A person can be asked, if the AI client can. Connections outlive AI clients and are shared, so an older server is told
/// so in any case; in the era without `initialize` each call says it for itself.
pub(super) fn capabilities() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::new())
        .with_url(UrlElicitationCapability::new());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities
}

/// An answer as MCP has it.
pub(super) fn result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(Some(content)) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
        Answer::Cancel | Answer::Silence | Answer::Garbled => ElicitResult::new(ElicitationAction::Cancel),
    }
}
