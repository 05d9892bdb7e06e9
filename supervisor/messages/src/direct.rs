//! Servers that AI clients have directly: what is asked of them, under the names that clients know.

use std::collections::BTreeMap;

use lockhouse_protocol::{Failure, ServerName};
use rmcp::model::{CompleteRequestParams, ErrorData, ProgressNotificationParam};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The front's own tools, whose names no other tool may have; one is for a tool that can be switched on.
pub const TOOL_NAMES: [&str; 4] = ["run_code", "search_tools", "get_result", "health"];

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// One call of an AI client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectCall {
    pub target: Target,
    pub action: Action,
    /// An object, as JSON.
    pub arguments: String,
    /// Whether the client makes a call again with what the server asks for: it then gets the question as it is.
    pub calls_again: bool,
    /// What a call that is made again brings.
    pub responses: Option<BTreeMap<String, Value>>,
    pub state: Option<String>,
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    Tool(String),
    Prompt(String),
    /// By its URI.
    Resource(String),
}

/// What is done with it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum Action {
    /// A tool is called, a resource read, a prompt got.
    #[default]
    Use,
    /// What one of its arguments could be.
    Complete(Box<CompleteRequestParams>),
    /// To be told when a resource changes.
    Subscribe,
}

/// What becomes of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallOutcome {
    /// A result, as its server wrote it; also one that says of itself that it is an error.
    Result(String),
    /// The server's own protocol error.
    Error(ErrorData),
    /// The call was not made, or has no answer.
    Failure(Failure),
}

/// What a server says during a call, as it says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Passed {
    Progress(ProgressNotificationParam),
    /// Parameters of `notifications/message`.
    Log(Value),
}

/// What has changed of what a client is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
    pub updated: Vec<(ServerName, String)>,
}
