//! Calls of upstream servers that AI clients make directly, without code, by the names that the front exposes.

use std::collections::BTreeMap;

use lockhouse_protocol::{Failure, ServerName};
use rmcp::model::{CompleteRequestParams, ErrorData, ProgressNotificationParam};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The names of the front's own tools, which no directly exposed tool may have. `health` is reserved even if it is
/// not enabled.
pub const BUILT_IN_TOOL_NAMES: [&str; 4] = ["run_code", "search_tools", "get_result", "health"];

/// The kinds of MCP lists that an AI client can request of directly exposed servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// A direct call of an AI client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectCall {
    pub target: DirectTarget,
    pub action: DirectAction,
    /// The arguments: a JSON object as text.
    pub arguments: String,
    /// Whether the client answers input requests by repeating the call (MCP 2026-07-28). It then gets the server's
    /// input requests in the result.
    pub supports_input_requests: bool,
    /// The answers to input requests, in a repeated call.
    pub input_responses: Option<BTreeMap<String, Value>>,
    /// The state that the server returned with its input requests, in a repeated call.
    pub request_state: Option<String>,
}

/// The target of a direct call, by the name under which AI clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectTarget {
    Tool(String),
    Prompt(String),
    /// A resource, by its URI.
    Resource(String),
}

/// What a direct call does with its target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum DirectAction {
    /// Calls a tool, reads a resource or gets a prompt.
    #[default]
    Use,
    /// Completes an argument (`completion/complete`).
    Complete(Box<CompleteRequestParams>),
    /// Subscribes to updates of a resource.
    Subscribe,
}

/// The outcome of a direct call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallOutcome {
    /// The server's result, unchanged. It may itself report an error (`isError`).
    Result(String),
    /// The server's JSON-RPC error.
    Error(ErrorData),
    /// Lockhouse did not make the call, or got no answer.
    Failure(Failure),
}

/// A notification of a server during a call, forwarded unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ForwardedNotification {
    Progress(ProgressNotificationParam),
    /// The parameters of `notifications/message`.
    Log(Value),
}

/// The lists and resources that changed since the last event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChanges {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    /// The updated resources, by server and URI.
    pub updated: Vec<(ServerName, String)>,
}
