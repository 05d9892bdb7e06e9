//! The messages.

use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_protocol::{Detail, ExecutionId, ResultHandle, ServerName};
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, CallOutcome, Caller, Changed, DirectCall, EndedRun, List, OpenQuestion, Passed, RunCode, RunView,
    Unasked,
};

/// The version of these messages. An engine refuses a front that speaks another one.
pub const VERSION: u32 = 1;

/// Names one exchange of a front; a front counts upwards from 1, and a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExchangeId(pub u64);

/// From a front to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// The first message.
    Hello { version: u32 },
    /// Opens an exchange.
    Request(ExchangeId, Box<Caller>, Box<Request>),
    /// Something for an exchange that is open.
    Input(ExchangeId, Input),
    /// Nobody follows the exchange any more. A run that nobody else follows or keeps is cancelled.
    Close(ExchangeId),
    /// What was granted to a client counts no more: what it began ends.
    Revoke { grant: u64 },
    /// The front ends, and with it all that it began.
    Goodbye,
}

/// From the engine to a front.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToFront {
    /// The answer to [`ToEngine::Hello`].
    Welcome {
        version: u32,
    },
    /// Nothing else is answered.
    Unsupported {
        version: u32,
    },
    /// What a front has to know: after the welcome, and again when it changes.
    Settings(FrontSettings),
    Event(ExchangeId, Event),
    /// The last message of an exchange.
    Response(ExchangeId, Response),
}

/// What a front has to know of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontSettings {
    /// Whether AI clients have any server directly.
    pub has_direct: bool,
    /// Whether models have the tool `health`.
    pub health_tool: bool,
    /// How long a request waits for the answer of its run.
    pub wait: Duration,
    /// How long a run and what is kept of its answer last at most.
    pub task_lifetime: Duration,
}

/// What a front asks for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Answered with [`Response::Run`], after events of the run.
    RunCode(RunCode),
    /// The same for a run that goes on without a request, or has ended: [`Event::Following`] comes first if it goes on.
    FollowRun(RunName),
    /// Answered with [`Response::Json`].
    Search(Search),
    /// A part of a result that is kept, from this byte on. Answered with [`Response::Json`].
    ReadResult { handle: ResultHandle, offset: usize },
    /// Of all servers that clients have directly: [`Response::Entries`].
    List(List),
    /// Answered with [`Response::Call`].
    Call(DirectCall),
    /// Follows what changes of what the client is shown, until the exchange is closed: an [`Event::Changed`] at a time, the
    /// next one after [`Input::Told`].
    FollowChanges,
    /// How the service is, as JSON; for a client that is granted a part of the servers, of the service alone.
    Health,
    /// Why the service takes no requests: [`Response::Reasons`]; none if it does.
    Readiness,
    /// The figures, as Prometheus reads them.
    Metrics,
}

/// How a run is found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunName {
    /// Under which it was told to go on without a request.
    Handle(ResultHandle),
    /// While it goes on.
    Execution(ExecutionId),
}

/// A search for tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Search {
    pub query: String,
    /// Tools that are found at most.
    pub limit: u32,
    pub detail: Detail,
    pub language: Language,
}

/// What a front says during an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Input {
    /// To the question with this key.
    Answer(String, Result<Answer, Unasked>),
    /// Asks for all questions of a run that have no answer yet: [`Event::Questions`].
    Questions,
    /// Asks what the run is doing: [`Event::View`].
    View,
    /// Lets the run go on without a request: [`Event::Kept`].
    Keep,
    /// Ends the run, whoever follows it.
    Cancel,
    /// The client was told of what has changed; the next changes may come.
    Told,
}

/// What the engine says during an exchange.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    Following(ExecutionId),
    /// To the person, whose answer is an input.
    Question(OpenQuestion),
    Questions(Vec<OpenQuestion>),
    View(RunView),
    /// The handle of the run; none if it cannot be kept now.
    Kept(Option<ResultHandle>),
    /// Progress, in words.
    Note(String),
    /// What a server says that the client has directly.
    Passed(Passed),
    Changed(Changed),
}

/// How an exchange ends.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    Run(Box<EndedRun>),
    Json(Value),
    Entries(Vec<String>),
    /// With the server that was called.
    Call(ServerName, CallOutcome),
    Reasons(Vec<String>),
    Text(Option<String>),
    /// There is no such run, tool or result.
    NotFound,
    /// The request cannot be meant so, in words for the client.
    Invalid(String),
    /// The same as an error of MCP.
    Error(ErrorData),
    /// The engine failed, and says nothing more.
    Broken,
}

#[cfg(test)]
mod tests;
