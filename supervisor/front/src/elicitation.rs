//! MCP elicitation: asks the user of an AI client a question.
//!
//! AI clients of protocol versions before 2026-07-28 get an elicitation request while one of their requests is in
//! flight. Newer AI clients get the question as the result of their request (`input_required`) and repeat the request
//! with the answer. The run waits in the meantime.

use std::time::Duration;

use lockhouse_mcp::server::{self, ClientChannel};
use lockhouse_messages::{Answer, AskError, InputSupport, Question};
#[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
use rmcp::model::CreateMessageResult;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    ServerRequest,
};
use serde_json::Value;

/// Maximum size of a user's answer, in bytes. A larger answer counts as malformed.
/// Bound: approvals and questions.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// Converts the capabilities that an AI client declares to the kinds of question that it supports: forms and URLs.
pub(super) fn client_abilities(capabilities: Option<ClientCapabilities>) -> InputSupport {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    let Some(elicitation) = elicitation else { return InputSupport::default() };
    // Older protocol versions know form elicitation only, and declare it as an empty object.
    let form = elicitation.form.is_some() || elicitation.url.is_none();
    InputSupport { form, url: elicitation.url.is_some(), ..InputSupport::default() }
}

/// Sends an elicitation or sampling request to the AI client and waits for the answer. Returns `Answer::TimedOut` if
/// there is none within `timeout`, and an error if the client does not support the question.
#[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
pub(super) async fn elicit(
    channel: &ClientChannel,
    question: Question,
    timeout: Duration,
) -> Result<Answer, AskError> {
    let is_sampling = matches!(question, Question::Sampling(_));
    let request = match to_input_request(question)? {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        _ => return Err(AskError::Unsupported),
    };
    match channel.ask(request, timeout).await {
        Ok(result) if is_sampling => {
            let message: CreateMessageResult =
                serde_json::from_str(&result).map_err(|_| AskError::Unsupported)?;
            Ok(Answer::Accept(Some(serde_json::to_value(message).map_err(|_| AskError::Unsupported)?)))
        }
        Ok(result) => serde_json::from_str(&result).map(to_answer).map_err(|_| AskError::Unsupported),
        Err(server::ServerRequestError::Timeout) => Ok(Answer::TimedOut),
        Err(server::ServerRequestError::Refused(_)) if is_sampling => Ok(Answer::Decline),
        Err(server::ServerRequestError::Refused(_) | server::ServerRequestError::Closed) => {
            Err(AskError::Unsupported)
        }
    }
}

/// Converts a question for the user to the parameters of an elicitation request. Fails if MCP cannot express the
/// question.
pub(super) fn elicitation_params(question: Question) -> Result<ElicitRequestParams, AskError> {
    let parameters = question.to_elicitation_parameters().ok_or(AskError::Unsupported)?;
    serde_json::from_value(parameters).map_err(|_| AskError::Unsupported)
}

/// Converts a question for the user to an entry of `inputRequests` in an `input_required` result. Fails if MCP cannot
/// express the question.
#[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
pub(super) fn to_input_request(question: Question) -> Result<InputRequest, AskError> {
    match question {
        Question::Sampling(parameters) => serde_json::from_value(parameters)
            .map(|parameters| InputRequest::CreateMessage(rmcp::model::CreateMessageRequest::new(parameters)))
            .map_err(|_| AskError::Unsupported),
        question => Ok(InputRequest::Elicitation(ElicitRequest::new(elicitation_params(question)?))),
    }
}

/// Parses an entry of `inputResponses`, which an AI client sends with a repeated request. An invalid entry gives
/// `Answer::Malformed`.
pub(super) fn parse_answer(response: Value) -> Answer {
    serde_json::from_value(response).map_or(Answer::Malformed, to_answer)
}

/// Converts the result of an elicitation to the user's answer.
pub(super) fn to_answer(result: ElicitResult) -> Answer {
    let fits = |content: &Value| content.is_object() && content.to_string().len() <= CONTENT_BYTES_MAX;
    match result.action {
        ElicitationAction::Accept => match result.content {
            Some(content) if !fits(&content) => Answer::Malformed,
            content => Answer::Accept(content),
        },
        ElicitationAction::Decline => Answer::Decline,
        _ => Answer::Cancel,
    }
}
