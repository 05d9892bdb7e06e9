//! Parses a message of an AI client. A message that is not valid is refused with an error that has the id of its request,
//! where one can be read, since the client would otherwise wait for an answer for ever.
//!
//! rmcp parses a message once for each type that it could be, which costs up to 4 µs for each JSON value. Here the method
//! decides the type, so that parameters are parsed once. A type of rmcp that is chosen by the method would make this module
//! unnecessary.

use std::borrow::Cow;

use lockhouse_base::json::{MessageEnds, member_value};
use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, CompleteRequestParams, ErrorData, GetPromptRequestParams,
    GetTaskParams, InitializeRequestParams, JsonRpcVersion2_0, PaginatedRequestParams,
    ReadResourceRequestParams, RequestId, RequestMetaObject, SubscribeRequestParams,
    SubscriptionsListenRequestParams, UnsubscribeRequestParams, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::output::answer_text;
use crate::pending_requests::cancellation;

const ID: &[u8] = b"\"id\"";
const METHOD: &[u8] = b"\"method\"";
const RESULT: &[u8] = b"\"result\"";
const ERROR: &[u8] = b"\"error\"";

/// A message of an AI client.
#[derive(Debug)]
pub enum ClientMessage {
    Request(Box<ClientRequest>),
    Notification(ClientNotification),
    /// The answer to a request of the server: its result as JSON text, or an error.
    Answer(RequestId, Result<String, ErrorData>),
}

/// A request of an AI client.
#[derive(Debug)]
pub struct ClientRequest {
    pub id: RequestId,
    pub method: String,
    pub meta: RequestMetaObject,
    /// The parameters; as an error, if they do not have the form that MCP defines, or if MCP has no such method.
    pub parameters: Result<Parameters, ErrorData>,
}

/// The parameters of a request, for each method of MCP.
#[derive(Debug)]
#[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
pub enum Parameters {
    Initialize(Box<InitializeRequestParams>),
    Discover,
    Ping,
    CallTool(CallToolRequestParams),
    ListTools(Option<PaginatedRequestParams>),
    GetTask(GetTaskParams),
    UpdateTask(UpdateTaskParams),
    CancelTask(CancelTaskParams),
    ListResources(Option<PaginatedRequestParams>),
    ListResourceTemplates(Option<PaginatedRequestParams>),
    ReadResource(ReadResourceRequestParams),
    Subscribe(SubscribeRequestParams),
    Unsubscribe(UnsubscribeRequestParams),
    ListPrompts(Option<PaginatedRequestParams>),
    GetPrompt(GetPromptRequestParams),
    Complete(CompleteRequestParams),
    SetLevel(rmcp::model::SetLevelRequestParams),
    Listen(SubscriptionsListenRequestParams),
}

/// A notification of an AI client.
#[derive(Debug)]
pub enum ClientNotification {
    Initialized,
    /// The client does not need the answer to this request any more.
    Cancelled(RequestId),
    /// One that changes nothing here, or that this protocol does not have.
    Other,
}

/// Why a message is refused: the id of its request, if one can be read, and the error that answers it.
#[derive(Debug)]
pub struct InvalidMessage {
    pub id: Option<RequestId>,
    pub error: Box<ErrorData>,
}

/// The members of a JSON-RPC message.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    error: Option<ErrorData>,
}

/// Deserializes a member that may be `null`, and is then not the same as one that is absent.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl ClientMessage {
    /// Parses the text of a message. An invalid answer to a request of the server counts as an error that answers it.
    ///
    /// # Errors
    /// [`InvalidMessage`], unless the message is a notification.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidMessage> {
        let members = match serde_json::from_slice::<Members<'_>>(text) {
            // serde would also accept a list of the members' values.
            Ok(members) if text.trim_ascii_start().starts_with(b"{") => members,
            Err(error) if matches!(error.classify(), Category::Syntax | Category::Eof) => {
                let message = format!("the message is not valid JSON: {error}");
                return Self::refuse(MessageEnds::of(text), ErrorData::parse_error(message, None));
            }
            Ok(_) | Err(_) => return Self::refuse(MessageEnds::of(text), not_jsonrpc()),
        };
        let id = members.id.map(|id| serde_json::from_str::<RequestId>(id.get()));
        match (members, id) {
            (Members { method: Some(method), params, result: None, error: None, .. }, Some(Ok(id))) => {
                Ok(Self::Request(Box::new(ClientRequest::parse(id, method.into_owned(), params))))
            }
            (Members { method: Some(method), params, .. }, None) => {
                Ok(Self::Notification(ClientNotification::parse(&method, params)))
            }
            (Members { method: None, result: Some(result), error: None, .. }, Some(Ok(id))) => {
                Ok(Self::Answer(id, Ok(result.get().to_owned())))
            }
            (Members { method: None, result: None, error: Some(error), .. }, Some(Ok(id))) => {
                Ok(Self::Answer(id, Err(error)))
            }
            _ => Self::refuse(MessageEnds::of(text), not_jsonrpc()),
        }
    }

    /// Returns the text of an answer, or of a cancellation. `None` for another message.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Self::Answer(id, answer) => Some(answer_text(id.clone(), answer.clone())),
            Self::Notification(ClientNotification::Cancelled(id)) => {
                Some(cancellation(id, "its client does not need the answer"))
            }
            Self::Notification(_) | Self::Request(_) => None,
        }
    }

    /// Returns what becomes of an invalid message, of which the ends are there.
    ///
    /// # Errors
    /// [`InvalidMessage`], unless it is a notification or an answer.
    pub fn refuse(ends: MessageEnds<'_>, error: ErrorData) -> Result<Self, InvalidMessage> {
        let id = ends.members(ID).find_map(member_value);
        let has = |key| ends.members(key).next().is_some();
        match id {
            Some(id) if !has(METHOD) && (has(RESULT) || has(ERROR)) => Ok(Self::Answer(id, Err(error))),
            None if has(METHOD) && !has(ID) && error.code == not_jsonrpc().code => {
                Ok(Self::Notification(ClientNotification::Other))
            }
            id => Err(InvalidMessage { id, error: Box::new(error) }),
        }
    }
}

fn not_jsonrpc() -> ErrorData {
    ErrorData::invalid_request("the message is not a valid JSON-RPC 2.0 message", None)
}

impl ClientNotification {
    fn parse(method: &str, params: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        match method {
            "notifications/initialized" => Self::Initialized,
            "notifications/cancelled" => match params.map(|params| serde_json::from_str(params.get())) {
                Some(Ok(Cancelled { request_id })) => Self::Cancelled(request_id),
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

impl ClientRequest {
    fn parse(id: RequestId, method: String, params: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Meta {
            #[serde(rename = "_meta")]
            meta: Option<RequestMetaObject>,
        }
        let mut parameters = Parameters::parse(&method, params);
        let meta = match &mut parameters {
            Ok(Parameters::CallTool(call)) => call.meta.take(),
            _ => params.and_then(|params| serde_json::from_str::<Meta>(params.get()).ok()?.meta),
        };
        Self { id, method, meta: meta.unwrap_or_default(), parameters }
    }
}

impl Parameters {
    fn parse(method: &str, params: Option<&RawValue>) -> Result<Self, ErrorData> {
        let text = params.map(RawValue::get);
        let parsed = match method {
            "initialize" => required(text).map(Self::Initialize),
            "server/discover" => optional::<Value>(text).map(|_| Self::Discover),
            "ping" => optional::<Value>(text).map(|_| Self::Ping),
            "tools/call" => required(text).map(Self::CallTool),
            "tools/list" => optional(text).map(Self::ListTools),
            "tasks/get" => required(text).map(Self::GetTask),
            "tasks/update" => required(text).map(Self::UpdateTask),
            "tasks/cancel" => required(text).map(Self::CancelTask),
            "resources/list" => optional(text).map(Self::ListResources),
            "resources/templates/list" => optional(text).map(Self::ListResourceTemplates),
            "resources/read" => required(text).map(Self::ReadResource),
            "resources/subscribe" => required(text).map(Self::Subscribe),
            "resources/unsubscribe" => required(text).map(Self::Unsubscribe),
            "prompts/list" => optional(text).map(Self::ListPrompts),
            "prompts/get" => required(text).map(Self::GetPrompt),
            "completion/complete" => required(text).map(Self::Complete),
            "logging/setLevel" => required(text).map(Self::SetLevel),
            "subscriptions/listen" => required(text).map(Self::Listen),
            _ => return Err(method_not_found(method)),
        };
        parsed.map_err(|fault| error_of(&fault, method, text))
    }

    /// Returns what a request names, for its header `Mcp-Name`: a tool, a prompt, a resource or a task.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::CallTool(call) => Some(&call.name),
            Self::GetPrompt(prompt) => Some(&prompt.name),
            Self::ReadResource(resource) => Some(&resource.uri),
            Self::Subscribe(resource) => Some(&resource.uri),
            Self::Unsubscribe(resource) => Some(&resource.uri),
            Self::GetTask(task) => Some(&task.task_id),
            Self::UpdateTask(task) => Some(&task.task_id),
            Self::CancelTask(task) => Some(&task.task_id),
            _ => None,
        }
    }
}

pub(super) fn method_not_found(method: &str) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)
}

/// Why parameters cannot be parsed.
enum Fault {
    /// The text is not valid JSON.
    Syntax(serde_json::Error),
    Form,
}

/// Parses parameters, which serde would also accept as a list of their values.
fn required<P: DeserializeOwned>(params: Option<&str>) -> Result<P, Fault> {
    let params = params.filter(|text| text.starts_with('{')).ok_or(Fault::Form)?;
    serde_json::from_str(params).map_err(|error| match error.classify() {
        Category::Syntax | Category::Eof => Fault::Syntax(error),
        Category::Data | Category::Io => Fault::Form,
    })
}

fn optional<P: DeserializeOwned>(params: Option<&str>) -> Result<Option<P>, Fault> {
    match params {
        None => Ok(None),
        some => required(some).map(Some),
    }
}

fn error_of(fault: &Fault, method: &str, params: Option<&str>) -> ErrorData {
    #[derive(Deserialize)]
    struct Arguments {
        arguments: Option<Value>,
    }
    if let Fault::Syntax(error) = fault {
        return ErrorData::parse_error(format!("the parameters are not valid JSON: {error}"), None);
    }
    let parsed = params.and_then(|params| serde_json::from_str::<Arguments>(params).ok());
    let message = match parsed.and_then(|params| params.arguments) {
        Some(arguments) if !arguments.is_object() => {
            format!("`arguments` of {method} must be an object, not {}", kind_of(&arguments))
        }
        _ => format!("the parameters of {method} do not have the form that MCP defines"),
    };
    ErrorData::invalid_params(message, None)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string: send the object itself, not its JSON text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
