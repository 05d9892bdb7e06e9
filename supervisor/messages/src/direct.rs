//! Direct calls: calls of upstream servers that AI clients make themselves, not through a program in
//! `run_code`. AI clients use the names under which Lockhouse's MCP server lists the tools.

use std::collections::BTreeMap;

use lockhouse_protocol::{Failure, ResultHandle, ServerName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The names of Lockhouse's own MCP tools, without the configured prefix.
pub const BUILT_IN_TOOL_NAMES: [&str; 4] = ["run_code", "search_tools", "get_result", "health"];

/// The kinds of MCP lists that an AI client can request of the upstream servers whose tools it can call directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// A direct call: a call that an AI client makes itself, without code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectCall {
    pub target: DirectTarget,
    pub action: DirectAction,
    /// The arguments of the call: a JSON object as text.
    pub arguments: String,
    /// Whether the AI client can answer input requests by repeating the call (MCP 2026-07-28). If so, input
    /// requests of the upstream server are returned as the result of the call.
    pub supports_input_requests: bool,
    /// In a repeated call: the AI client's answers to the input requests of the upstream server. Otherwise `None`.
    pub input_responses: Option<BTreeMap<String, Value>>,
    /// In a repeated call: the state that the upstream server returned with its input requests. Otherwise `None`.
    pub request_state: Option<String>,
}

/// A repeated direct call, with which the AI client answers the questions of one that was suspended ([`Input::Suspend`]).
///
/// [`Input::Suspend`]: crate::Input::Suspend
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResumedCall {
    /// The handle of the suspended call.
    pub handle: ResultHandle,
    /// The digest of target and arguments, which must be the same as when the call was suspended.
    pub digest: CallDigest,
}

/// SHA-256 of the target and the arguments of a direct call, whatever the order of their keys. It is the AI client's own front that
/// computes it: it keeps a client from answering about another call than it was asked about.
pub type CallDigest = [u8; 32];

/// The target of a direct call: the name or the URI by which AI clients know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectTarget {
    Tool(String),
    Prompt(String),
    /// A resource of an upstream server, by its URI.
    Resource(String),
}

/// What a direct call does with its target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum DirectAction {
    /// Calls the tool, reads the resource or gets the prompt.
    #[default]
    Use,
    /// Completes an argument of a prompt or resource: the parameters of `completion/complete`.
    Complete(Value),
    /// Subscribes to updates of the resource.
    Subscribe,
}

/// What a direct call returned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum DirectReply {
    /// The upstream server's result, unchanged. The result may itself report an error (`isError`).
    Result(String),
    /// The JSON-RPC error with which the upstream server answered.
    Error(JsonRpcError),
    /// Lockhouse did not make the call, or got no answer from the upstream server.
    Failure(Failure),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonRpcError {
    pub code: i32,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A notification of an upstream server during a direct call, forwarded to the AI client unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ForwardedNotification {
    /// The parameters of `notifications/progress`. The front replaces the progress token.
    Progress(Value),
    /// A log message of the upstream server: the parameters of `notifications/message`.
    Log(Value),
}

/// Which MCP lists and resources of upstream servers have changed since the previous report to the AI client. For
/// a list, the value only says whether it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChanges {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    /// The updated resources to which the AI client had subscribed, each by its server and URI.
    pub updated: Vec<(ServerName, String)>,
}
