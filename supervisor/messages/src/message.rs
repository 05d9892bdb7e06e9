//! The messages that front and engine exchange, and the requests, inputs, events and responses in them.

use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_protocol::{ExecutionId, ResultHandle, SearchDetail, ServerName};
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, AskError, CallOutcome, Caller, DirectCall, FinishedRun, ForwardedNotification, ListChanges,
    ListKind, OpenQuestion, RunCode, RunView,
};

/// The version of the messages between fronts and engine. The engine rejects a front with another version.
pub const VERSION: u32 = 1;

/// The id of an exchange of a front. A front numbers its exchanges upwards from 1 and never reuses an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExchangeId(pub u64);

/// A message from a front to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// The first message, with the front's version.
    Hello { version: u32 },
    /// Opens an exchange.
    Request(ExchangeId, Box<Caller>, Box<Request>),
    /// An input for an open exchange.
    Input(ExchangeId, Input),
    /// The front no longer follows the exchange. Cancels a run that is neither detached nor followed by another
    /// exchange.
    Close(ExchangeId),
    /// A client's grant was revoked. Everything that the client began under it ends.
    Revoke { grant: u64 },
    /// The front closes its connection. Everything that it began ends.
    Goodbye,
}

/// A message from the engine to a front.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToFront {
    /// The answer to [`ToEngine::Hello`].
    Welcome {
        version: u32,
    },
    /// The answer to a front whose version is not supported. No other message follows.
    Unsupported {
        version: u32,
    },
    /// The settings for the front: sent after the welcome, and again when they change.
    Settings(FrontSettings),
    Event(ExchangeId, Event),
    /// The response to a request. It ends the exchange.
    Response(ExchangeId, Response),
}

/// The settings of the engine that a front needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontSettings {
    /// Whether a server is exposed to AI clients directly.
    pub has_direct: bool,
    /// Whether the tool `health` is exposed to models.
    pub health_tool: bool,
    /// How long an MCP request waits for its run to finish before it returns a handle of the run.
    pub wait: Duration,
    /// The longest time that a detached run and its result are kept.
    pub task_lifetime: Duration,
}

/// A request that opens an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Runs a program. Events of the run come first, then [`Response::Run`].
    RunCode(RunCode),
    /// Follows a detached or finished run. [`Event::Following`] comes first if it is still running, then the same
    /// messages as for [`RunCode`](Self::RunCode).
    FollowRun(RunReference),
    /// Searches tools. Answered with [`Response::Json`].
    Search(SearchRequest),
    /// Reads a stored result from a byte offset. Answered with [`Response::Json`].
    ReadResult { handle: ResultHandle, offset: usize },
    /// Lists what all directly exposed servers offer. Answered with [`Response::Entries`].
    List(ListKind),
    /// Makes a direct call. Answered with [`Response::Call`].
    Call(DirectCall),
    /// Follows changes of the lists that the client sees, until the exchange is closed. After each [`Event::Changed`]
    /// the next one waits for [`Input::ChangesDelivered`].
    FollowChanges,
    /// Returns the health report as JSON. A client whose grant covers some servers only gets the report without
    /// servers.
    Health,
    /// Returns the reasons why the service accepts no requests, as [`Response::Reasons`]; none if it accepts
    /// requests.
    Readiness,
    /// Returns the metrics in the Prometheus text format.
    Metrics,
}

/// A reference to a run of an earlier request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunReference {
    /// The handle that the run got when it was detached.
    Handle(ResultHandle),
    /// The execution id, while the run is running.
    Execution(ExecutionId),
}

/// A search for tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchRequest {
    pub query: String,
    /// Maximum number of tools that the search returns.
    pub limit: u32,
    pub detail: SearchDetail,
    pub language: Language,
}

/// An input of the front during an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Input {
    /// The answer to the question with this key, or why it was not asked.
    Answer(String, Result<Answer, AskError>),
    /// Requests all unanswered questions of the run. Answered with [`Event::Questions`].
    Questions,
    /// Requests the state of the run. Answered with [`Event::View`].
    View,
    /// Detaches the run, so that it continues without a request. Answered with [`Event::Detached`].
    Detach,
    /// Cancels the run, even if other exchanges follow it.
    Cancel,
    /// The client was notified of the last changes, so that the next ones may be sent.
    ChangesDelivered,
}

/// An event of an exchange, sent by the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    Following(ExecutionId),
    /// A question for the user of the AI client. The answer is [`Input::Answer`].
    Question(OpenQuestion),
    Questions(Vec<OpenQuestion>),
    View(RunView),
    /// The handle of the detached run; `None` if no further run can be detached now.
    Detached(Option<ResultHandle>),
    /// A progress message of the run.
    ProgressMessage(String),
    /// A notification of a directly exposed server.
    Notification(ForwardedNotification),
    Changed(ListChanges),
}

/// The response that ends an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    Run(Box<FinishedRun>),
    Json(Value),
    Entries(Vec<String>),
    /// The outcome of a direct call, with the server that was called.
    Call(ServerName, CallOutcome),
    Reasons(Vec<String>),
    Text(Option<String>),
    /// The run, tool or stored result that the request names does not exist.
    NotFound,
    /// The request is not valid, for this reason.
    Invalid(String),
    /// The request is not valid, with the JSON-RPC error to return.
    Error(ErrorData),
    /// The engine failed and sends nothing more.
    EngineFailed,
}

#[cfg(test)]
mod tests;
