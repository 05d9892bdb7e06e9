//! Results of the type `input_required`, with which an upstream server asks for input before a call can continue (MCP
//! 2026-07-28).

use std::collections::BTreeMap;

use lockhouse_base::json;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_types::{CallError, InputResponses};
use super::{elicitation_conversion, elicitation_validation};
use lockhouse_run_channel::{Answer, Question, RunChannel};

/// Maximum number of times that Lockhouse sends one call to a server that answers with `input_required`. If the last
/// answer is `input_required` too, the call fails.
/// Bound: approvals and questions.
pub(super) const ROUNDS_MAX: usize = 10;
/// Maximum size in bytes of an `input_required` result, including its questions and state. A larger result fails the
/// call.
/// Bound: approvals and questions.
const BYTES_MAX: usize = 256 * 1024;
/// Maximum number of JSON values in an `input_required` result that is forwarded to the AI client. A result with more
/// values fails the call.
const VALUES_MAX: usize = 10_000;
const QUESTIONS_MAX: usize = 8;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
}

/// A parsed `input_required` result of an upstream server: its questions to the user and its state.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequired<'a> {
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, InputRequest<'a>>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct InputRequest<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Parses the result of a call as `input_required`; `None` if it is an ordinary result. Returns an error if the result
/// is `input_required` but invalid or too large.
pub(super) fn parse(result: &str) -> Result<Option<InputRequired<'_>>, CallError> {
    let outline: Option<Outline<'_>> = serde_json::from_str(result).ok();
    if outline.and_then(|outline| outline.result_type).is_none_or(|kind| kind.get() != "\"input_required\"") {
        return Ok(None);
    }
    let unusable = || CallError::tool_failed("its request for input is not valid MCP");
    if result.len() > BYTES_MAX {
        return Err(CallError::tool_failed("its request for input is too large"));
    }
    let required: InputRequired<'_> = serde_json::from_str(result).map_err(|_| unusable())?;
    let asks_nothing = required.input_requests.is_empty() && required.request_state.is_none();
    if asks_nothing || required.input_requests.len() > QUESTIONS_MAX {
        return Err(unusable());
    }
    Ok(Some(required))
}

impl InputRequired<'_> {
    /// Obtains the answer to each of the server's questions from the AI client of `channel`, one after the other, and
    /// returns the answers with the server's state. Returns an error if the AI client does not support a question.
    /// Requests for sampling are an error in calls of submitted code.
    pub(super) async fn responses(
        self,
        server: &ServerName,
        item: &CallTarget,
        channel: &RunChannel,
    ) -> Result<InputResponses, CallError> {
        let mut responses = BTreeMap::new();
        for (key, request) in self.input_requests {
            let question = request.question(server)?;
            if matches!(question, Question::Sampling(_)) && !channel.is_direct() {
                return Err(not_a_question());
            }
            let is_sampling = matches!(question, Question::Sampling(_));
            if !channel.supports(question.kind()) {
                return Err(unanswerable(item));
            }
            let answer = channel.ask(server, question).await.map_err(|unasked| {
                CallError::tool_failed(format!("it asks for input from a person, and {unasked}"))
            })?;
            responses.insert(
                key,
                match answer {
                    Answer::Accept(Some(message)) if is_sampling => message,
                    _ if is_sampling => {
                        return Err(CallError::tool_failed("the AI client returned no sampling result"));
                    }
                    answer => {
                        serde_json::to_value(elicitation_conversion::result(answer)).unwrap_or_default()
                    }
                },
            );
        }
        let responses = (!responses.is_empty()).then_some(responses);
        Ok(InputResponses { responses, state: self.request_state })
    }
}

impl InputRequest<'_> {
    /// Converts the server's request into a question for the AI client. Returns an error if the kind of request is
    /// unknown, or if the question cannot be shown to the user.
    fn question(&self, server: &ServerName) -> Result<Question, CallError> {
        let parameters = self.params.map_or("", RawValue::get);
        let question = match self.method.as_str() {
            "elicitation/create" => elicitation_validation::elicitation(server, parameters),
            "sampling/createMessage" => elicitation_validation::sampling(parameters),
            _ => return Err(not_a_question()),
        };
        question.map_err(|unfit| {
            CallError::tool_failed(format!("its question to the user cannot be shown: {unfit}"))
        })
    }
}

/// Prepares an `input_required` result for an AI client that answers it by repeating its call, and returns the JSON
/// text of the result. Each question to the user is changed so that it names the upstream server that asks.
///
/// # Errors
///
/// If the result is invalid, or the AI client lacks a capability that a question needs.
pub(super) fn forward_to_client(
    raw: &str,
    server: &ServerName,
    item: &CallTarget,
    channel: &RunChannel,
) -> Result<String, CallError> {
    let Some(required) = parse(raw)? else { return Err(not_a_question()) };
    let mut asking = json::parse_bounded(raw.as_bytes(), VALUES_MAX).map_err(|_| not_a_question())?;
    for (key, request) in &required.input_requests {
        if request.method == "roots/list" {
            if !channel.supports_roots() {
                return Err(unanswerable(item));
            }
            continue;
        }
        let question = request.question(server)?;
        if !channel.supports(question.kind()) {
            return Err(unanswerable(item));
        }
        if let Some(Value::Object(shown)) = question.to_elicitation_parameters()
            && let Some(Value::Object(parameters)) =
                asking.pointer_mut("/inputRequests").and_then(|all| all.get_mut(key)?.get_mut("params"))
        {
            parameters.extend(shown);
        }
        channel.record_forwarded(server);
    }
    Ok(asking.to_string())
}

fn not_a_question() -> CallError {
    CallError::tool_failed("it requires input of a kind that Lockhouse does not provide")
}

/// Returns the error of a call whose server asks for input that no user can give.
pub(super) fn unanswerable(item: &CallTarget) -> CallError {
    let kind = item.kind();
    let words = format!(
        "the {kind} asks for input from a person, and this AI client cannot ask one: use an AI client that supports \
         elicitation, or give the {kind} all it needs in its arguments"
    );
    CallError::tool_failed(words)
}
