//! A result that asks for more input before the call can go on: MCP 2026-07-28 has no requests of servers.

use std::collections::BTreeMap;

use lockhouse_base::json;
use lockhouse_policies::Item;
use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{CallError, InputResponses};
use super::callers::Caller;
use super::elicitation;
use crate::ai_client::{Answer, Question};

/// Times that one call may ask.
pub(super) const ROUNDS_MAX: usize = 10;
/// Bytes of a result that asks, questions and state together.
const BYTES_MAX: usize = 256 * 1024;
/// JSON values of it, where it is handed on.
const VALUES_MAX: usize = 10_000;
const QUESTIONS_MAX: usize = 8;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
}

/// A result of the type `input_required`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Required<'a> {
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, Request<'a>>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Request<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// What a result asks for, if it asks.
pub(super) fn required(result: &str) -> Result<Option<Required<'_>>, CallError> {
    let outline: Option<Outline<'_>> = serde_json::from_str(result).ok();
    if outline.and_then(|outline| outline.result_type).is_none_or(|kind| kind.get() != "\"input_required\"") {
        return Ok(None);
    }
    let unusable = || CallError::failed("it asks for input in a way that MCP does not know");
    if result.len() > BYTES_MAX {
        return Err(CallError::failed("what it asks for input with is too large"));
    }
    let required: Required<'_> = serde_json::from_str(result).map_err(|_| unusable())?;
    let asks_nothing = required.input_requests.is_empty() && required.request_state.is_none();
    if asks_nothing || required.input_requests.len() > QUESTIONS_MAX {
        return Err(unusable());
    }
    Ok(Some(required))
}

impl Required<'_> {
    /// Has each question answered, one after the other.
    pub(super) async fn responses(
        self,
        server: &ServerName,
        item: &Item,
        caller: &Caller,
    ) -> Result<InputResponses, CallError> {
        let mut responses = BTreeMap::new();
        for (key, request) in self.input_requests {
            let question = request.question(server)?;
            if matches!(question, Question::Sampling(_)) && caller.wire.is_none() {
                return Err(no_question());
            }
            let is_sampling = matches!(question, Question::Sampling(_));
            let ai_client = caller.ai_client.as_ref().ok_or_else(|| unanswerable(item))?;
            if !ai_client.can(question.mode()) {
                return Err(unanswerable(item));
            }
            let answer = ai_client.ask(server, question).await.map_err(|unasked| {
                CallError::failed(format!("it asks for input from a person, and {unasked}"))
            })?;
            responses.insert(
                key,
                match answer {
                    Answer::Accept(Some(message)) if is_sampling => message,
                    _ if is_sampling => {
                        return Err(CallError::failed("the AI client gives it no answer of its model"));
                    }
                    answer => serde_json::to_value(elicitation::result(answer)).unwrap_or_default(),
                },
            );
        }
        let responses = (!responses.is_empty()).then_some(responses);
        Ok(InputResponses { responses, state: self.request_state })
    }
}

impl Request<'_> {
    /// What of it may be shown.
    fn question(&self, server: &ServerName) -> Result<Question, CallError> {
        let parameters = self.params.map_or("", RawValue::get);
        let question = match self.method.as_str() {
            "elicitation/create" => Question::read(server, parameters),
            "sampling/createMessage" => Question::sampling(parameters),
            _ => return Err(no_question()),
        };
        question.map_err(|unfit| CallError::failed(format!("what it asks a person is not shown: {unfit}")))
    }
}

/// A result that asks, as a client gets it that answers with its next call: as it is, but for questions to a person, which
/// say whose they are. What the client did not say that it can do is not asked.
pub(super) fn handed_on(
    raw: &str,
    server: &ServerName,
    item: &Item,
    caller: &Caller,
) -> Result<String, CallError> {
    let Some(required) = required(raw)? else { return Err(no_question()) };
    let ai_client = caller.ai_client.as_ref().ok_or_else(|| unanswerable(item))?;
    let mut asking = json::tree(raw.as_bytes(), VALUES_MAX).map_err(|_| no_question())?;
    for (key, request) in &required.input_requests {
        if request.method == "roots/list" {
            if !ai_client.names_roots() {
                return Err(unanswerable(item));
            }
            continue;
        }
        let question = request.question(server)?;
        if !ai_client.can(question.mode()) {
            return Err(unanswerable(item));
        }
        if let Some(Value::Object(shown)) = question.shown()
            && let Some(Value::Object(parameters)) =
                asking.pointer_mut("/inputRequests").and_then(|all| all.get_mut(key)?.get_mut("params"))
        {
            parameters.extend(shown);
        }
        ai_client.handed_on(server);
    }
    Ok(asking.to_string())
}

fn no_question() -> CallError {
    CallError::failed("it asks the AI client for what is no question to a person, and gets none")
}

/// The failure of a call whose server asks what nobody can be asked.
pub(super) fn unanswerable(item: &Item) -> CallError {
    let kind = item.kind();
    let words = format!(
        "the {kind} asks for input from a person, and this AI client cannot ask one: use an AI client that supports \
         elicitation, or give the {kind} all it needs in its arguments"
    );
    CallError::failed(words)
}
