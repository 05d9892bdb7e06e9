//! Questions to the person behind an AI client, as MCP puts them.
//!
//! An AI client of the older eras is asked while one of its requests waits. In the era without requests of servers the
//! request is answered with the question, its run is kept, and the client calls again with what the person said.

use std::time::Duration;

use lockhouse_messages::{Abilities, Answer, Question, Unasked};
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde_json::Value;

/// Bytes of what a person said.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// What an AI client says that it can do.
pub(super) fn abilities(capabilities: Option<ClientCapabilities>) -> Abilities {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    let Some(elicitation) = elicitation else { return Abilities::default() };
    // Before there were two modes it was said in no more than its name.
    let form = elicitation.form.is_some() || elicitation.url.is_none();
    Abilities { form, url: elicitation.url.is_some(), ..Abilities::default() }
}

/// Asks during the call, as the older eras do.
pub(super) async fn ask(
    peer: &Peer<RoleServer>,
    question: Question,
    patience: Duration,
) -> Result<Answer, Unasked> {
    if let Question::Sampling(parameters) = question {
        return ask_model(peer, parameters, patience).await;
    }
    let parameters = parameters(question)?;
    match peer.create_elicitation_with_timeout(parameters, Some(patience)).await {
        Ok(result) => Ok(answer(result)),
        Err(ServiceError::Timeout { .. }) => Ok(Answer::Silence),
        Err(_) => Err(Unasked::Unable),
    }
}

#[expect(deprecated)]
async fn ask_model(
    peer: &Peer<RoleServer>,
    parameters: Value,
    patience: Duration,
) -> Result<Answer, Unasked> {
    let parameters: rmcp::model::CreateMessageRequestParams =
        serde_json::from_value(parameters).map_err(|_| Unasked::Unable)?;
    match tokio::time::timeout(patience, peer.create_message(parameters)).await {
        Ok(Ok(message)) => serde_json::to_value(message)
            .map(|message| Answer::Accept(Some(message)))
            .map_err(|_| Unasked::Unable),
        Ok(Err(ServiceError::McpError(_))) => Ok(Answer::Decline),
        Ok(Err(_)) => Err(Unasked::Unable),
        Err(_) => Ok(Answer::Silence),
    }
}

/// The question in the words of MCP.
pub(super) fn parameters(question: Question) -> Result<ElicitRequestParams, Unasked> {
    let parameters = question.shown().ok_or(Unasked::Unable)?;
    serde_json::from_value(parameters).map_err(|_| Unasked::Unable)
}

/// The question in a result, for a client that calls again.
#[expect(deprecated)]
pub(super) fn input_request(question: Question) -> Result<InputRequest, Unasked> {
    match question {
        Question::Sampling(parameters) => serde_json::from_value(parameters)
            .map(|parameters| InputRequest::CreateMessage(rmcp::model::CreateMessageRequest::new(parameters)))
            .map_err(|_| Unasked::Unable),
        question => Ok(InputRequest::Elicitation(ElicitRequest::new(parameters(question)?))),
    }
}

/// What a person said, as a call that comes again brings it.
pub(super) fn meaning(said: Value) -> Answer {
    serde_json::from_value(said).map_or(Answer::Garbled, answer)
}

/// What a person said.
pub(super) fn answer(result: ElicitResult) -> Answer {
    let fits = |content: &Value| content.is_object() && content.to_string().len() <= CONTENT_BYTES_MAX;
    match result.action {
        ElicitationAction::Accept => match result.content {
            Some(content) if !fits(&content) => Answer::Garbled,
            content => Answer::Accept(content),
        },
        ElicitationAction::Decline => Answer::Decline,
        _ => Answer::Cancel,
    }
}
