//! The messages that the front and the engine exchange.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_protocol::{ExecutionId, Language, ResultHandle, SearchDetail, ServerName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Access, AccessRefusal, Answer, ApprovalEvent, ApprovalInput, AskError, Authentication,
    BUILT_IN_TOOL_NAMES, CallDigest, ConnectionId, Credential, DirectCall, DirectReply, FinishedRun,
    ForwardedNotification, FrontCounters, GrantId, HostTag, JsonRpcError, LifecycleState, ListChanges,
    ListKind, OpenQuestion, OperatorRequest, OperatorResponse, Owner, RequestHead, ResumedCall, Role,
    RunCode, RunView, SpanId, SpanOutcome, ToolCallSpan, UserLoginRequest, WatcherRole,
};

/// Maximum time for the response to a request that only reads. Servers that must start first have up to their start
/// timeouts.
const READ_TIMEOUT: Duration = Duration::from_secs(600);

/// The id of an exchange: a request of a front to the engine, with the events, inputs and response that
/// belong to it. A front numbers its exchanges upwards from 1 and never reuses an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExchangeId(pub u64);

/// A message from a front to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// Sends a request on behalf of an AI client. This opens an exchange, to which all messages about the request
    /// belong.
    Request(ExchangeId, Box<RequestHead>, Box<Request>),
    /// An input of the front for an open exchange, such as the answer to a question.
    Input(ExchangeId, Input),
    /// The front has passed on this number of events of an exchange, so that the engine may send as many further ones.
    Credit(ExchangeId, u32),
    /// The front no longer waits for the response to a request. The engine cancels the run of this exchange,
    /// unless the run is in the background or another exchange follows it.
    Close(ExchangeId),
    /// AI clients can connect to the front. Until it disconnects, a drain of the engine waits for the requests of AI clients
    /// that the front has not answered.
    Listening,
    /// The number of requests of AI clients that the front has not answered: sent when the engine begins to drain, and then
    /// after each change from or to zero.
    InFlight { requests: u64 },
    /// What the front has counted for the metrics since its previous report.
    Counters(Box<FrontCounters>),
    /// An MCP session over HTTP has ended ([`McpSessionRequest`]): by its client, or by a limit.
    McpSessionEnded(String),
    /// A connection to a Unix domain socket is closed ([`Credential::UnixConnection`]). The engine accepts no further request
    /// that names it as its credential.
    ConnectionClosed(ConnectionId),
    /// Begins the span of a call of an AI client. Requests name it as the cause of their work. Sent only if the engine
    /// exports traces ([`FrontSettings::has_traces`]).
    BeginSpan(SpanId, Box<ToolCallSpan>),
    /// Ends a span: the call was answered.
    EndSpan(SpanId, SpanOutcome),
    /// The front closes its connection. The engine ends everything that the front began.
    Goodbye,
}

/// A message from the engine to a front.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToFront {
    /// The state of the engine's lifecycle: sent after the first `Settings`, and again when it changes.
    Lifecycle(LifecycleState),
    /// The settings for the front: the first message of the engine, and again when they change.
    Settings(FrontSettings),
    /// The engine begins a request that must not be repeated ([`Repetition::Never`]). An engine in another process sends
    /// this before it does anything for the request, so a request without this message had no effects. A front for HTTP does not
    /// get it, since that ends with its engine.
    Begun(ExchangeId),
    Event(ExchangeId, Event),
    /// The response to a request of the front. The response ends the exchange.
    Response(ExchangeId, Response),
    /// The access of an AI client has ended before its time, for example because its token was revoked. The front ends the
    /// event streams of the grant. Further requests with the grant are refused.
    AccessEnded {
        grant: GrantId,
    },
    /// A message for an MCP session, for fronts for HTTP. A front without this session ignores it.
    SessionMessage(SessionMessage),
}

/// The settings of the engine that a front needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontSettings {
    /// Whether files that runs return are stored, so that AI clients can read them as resources.
    pub has_files: bool,
    /// Whether an operator has let this host of a cluster take no new work. Fronts for HTTP refuse it.
    #[serde(default)]
    pub is_withdrawn: bool,
    /// Whether AI clients can call tools of at least one upstream server directly, without code.
    pub has_direct: bool,
    /// The names of the upstream servers that programs can import.
    pub code_servers: Vec<String>,
    /// Which of Lockhouse's own tools AI clients get, and under which names.
    pub tools: BuiltinTools,
    /// The optional protections of the sandbox that this host is known to lack.
    pub missing_protections: Vec<String>,
    /// The names of the Python packages that programs can import.
    #[serde(default)]
    pub packages: Vec<String>,
    /// How long an MCP request waits for its run to end. After this time, the AI client gets a handle, and the run
    /// continues in the background.
    pub wait: Duration,
    /// The time limit of a run, which a request can only shorten.
    #[serde(default)]
    pub run_limit: Duration,
    /// Maximum time from the start of a background run until its answer is deleted: the maximum duration of the
    /// run plus the time for which the answer is stored.
    pub task_lifetime: Duration,
    /// How AI clients authenticate over HTTP.
    #[serde(default)]
    pub authentication: Authentication,
    /// Whether the engine exports traces, so that the front reports calls as spans.
    #[serde(default)]
    pub has_traces: bool,
    /// The tag of this host, with which the front ends the ids that it makes. `None` without a cluster.
    #[serde(default)]
    pub host_tag: Option<HostTag>,
}

/// Which of Lockhouse's own tools AI clients get, and under which names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinTools {
    /// Whether AI clients get the tool `health`.
    pub health: bool,
    /// The prefix of the name of each of Lockhouse's own tools, such as `lockhouse_`. Empty by default.
    pub prefix: String,
    /// The tools that AI clients do not get.
    pub hidden: Vec<BuiltinTool>,
}

/// One of the tools that AI clients get unless the configuration hides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinTool {
    RunCode,
    SearchTools,
    GetResult,
}

impl BuiltinTool {
    /// All tools that can be hidden.
    pub const ALL: [Self; 3] = [Self::RunCode, Self::SearchTools, Self::GetResult];

    /// Returns the name of the tool without a prefix.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunCode => "run_code",
            Self::SearchTools => "search_tools",
            Self::GetResult => "get_result",
        }
    }
}

impl BuiltinTools {
    /// Returns those of the tools that the configuration can hide that it does not hide.
    pub fn shown(&self) -> impl Iterator<Item = BuiltinTool> {
        BuiltinTool::ALL.into_iter().filter(|tool| !self.hidden.contains(tool))
    }

    /// Returns the name under which AI clients know one of Lockhouse's own tools.
    pub fn exposed_name(&self, tool: BuiltinTool) -> String {
        format!("{}{}", self.prefix, tool.as_str())
    }

    /// Whether a name belongs to one of Lockhouse's own tools, so that no tool of an upstream server may have it. The names
    /// of tools that AI clients do not get are reserved too.
    pub fn reserves(&self, name: &str) -> bool {
        name.strip_prefix(self.prefix.as_str()).is_some_and(|name| BUILT_IN_TOOL_NAMES.contains(&name))
    }

    /// Removes the prefix from the name of one of Lockhouse's own tools. Returns `None` if AI clients get no such
    /// tool.
    pub fn original_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        let name = name.strip_prefix(self.prefix.as_str())?;
        let is_known = self.shown().any(|tool| tool.as_str() == name) || (self.health && name == "health");
        is_known.then_some(name)
    }
}

/// A request of a front to the engine. It opens an exchange, to which all messages about the request belong.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Verifies a credential. Answered with [`Response::Access`]. Requires no grant.
    Authenticate(Credential),
    /// Runs a program. The engine sends the events of the run, then [`Response::Run`].
    RunCode(RunCode),
    /// Follows a background run, or gets the answer of one that has ended. If the run has not ended, the engine
    /// first sends [`Event::Following`], and then the same messages as for [`RunCode`](Self::RunCode).
    FollowRun(RunReference),
    /// Keeps an MCP session over HTTP in the engine, or finds one that another front has begun. Answered with
    /// [`Response::Text`].
    McpSession(McpSessionRequest),
    /// Searches the tools that the AI client may use. Answered with [`Response::Json`].
    Search(SearchRequest),
    /// Requests the list of servers and tools for the description of `run_code`. Answered with [`Response::Text`].
    DescribeCatalogue,
    /// Follows the background run with this handle, like [`FollowRun`](Self::FollowRun), or reads a page of the stored result. The
    /// page starts at `offset`, which counts items if the result is a list, otherwise characters. A page is answered with
    /// [`Response::Json`].
    // Earlier builds read pages alone, under this name.
    #[serde(alias = "ReadResult")]
    GetResult { handle: ResultHandle, offset: usize },
    /// Reads a stored file. Answered with [`Response::File`].
    ReadFile { handle: ResultHandle },
    /// Lists the tools, resources, resource templates or prompts that the AI client can use without code. Answered
    /// with [`Response::Entries`].
    List(ListKind),
    /// Makes a direct call (a call of an upstream server without code). Answered with [`Response::Call`].
    Call(DirectCall),
    /// Resumes a suspended direct call. The engine first sends [`Event::Questions`], or answers with [`Response::NotFound`] if there
    /// is no such call.
    ResumeCall(ResumedCall),
    /// Reports changes to the tool definitions and MCP lists that the AI client gets, until the front closes the
    /// exchange. The first [`Event::Changed`] has no changes: from then on, the engine misses none. After each event, it waits
    /// for [`Input::ChangesDelivered`] before it sends the next one.
    FollowChanges,
    /// Requests the health report as JSON. If the AI client's token grants only some upstream servers, the report
    /// contains no upstream servers and no counters that other AI clients influence. Answered with
    /// [`Response::Json`].
    Health,
    /// Requests the complete health report as JSON. Answered with [`Response::Json`].
    ServiceHealth,
    /// Requests the reasons why the service cannot run code now. Answered with [`Response::Reasons`], which is empty
    /// if the service can run code.
    Readiness,
    /// A request of another host of the cluster: can this one reach the state that the hosts share? Answered with
    /// [`Response::Reasons`], which is empty if it can.
    SharedState,
    /// Requests the metrics in the Prometheus text format. Answered with [`Response::Text`], which contains `None`
    /// if metrics are disabled.
    Metrics,
    /// A request of a user about their own credentials for an upstream server. Answered with [`Response::Text`],
    /// [`Response::NotFound`] or [`Response::Invalid`].
    UserLogin(UserLoginRequest),
    /// A request of an operator. Answered with [`Response::Operator`].
    Operator(OperatorRequest),
    /// Watches the questions about calls that require approval, in the runs of all AI clients, until the front closes the
    /// exchange. The engine sends [`Event::Approval`], and the front answers with [`Input::Approval`].
    WatchApprovals(WatcherRole),
}

/// A reference to a run that an earlier request started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunReference {
    /// The handle that the AI client got when the run was moved to the background.
    Handle(ResultHandle),
    /// The execution id of a run that has not ended.
    Execution(ExecutionId),
}

/// What a front for HTTP asks about an MCP session. Sessions outlive the process of the front that began them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpSessionRequest {
    /// A session has begun. `client` is what the client said of itself, as JSON. The response has no text.
    Keep { id: String, client: String },
    /// Asks what the client of this session said of itself. The response has no text if there is no such session, or another
    /// client began it.
    Find { id: String },
    /// Ends a session. The response has no text.
    End { id: String },
    /// A message of the client for a session, as JSON-RPC text, has arrived at the wrong host of a cluster: the answer to a question
    /// of the host `to`, or the end of a request of any other host (`None`). The response has no text.
    Deliver { id: String, to: Option<HostTag>, message: String },
}

/// A message of the client of an MCP session, which another host of the cluster has received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMessage {
    /// The id of the session.
    pub session: String,
    /// The client. The message is for no session of another one.
    pub owner: Owner,
    /// JSON-RPC text: an answer or a notification.
    pub message: String,
}

/// A search in the tools of upstream servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchRequest {
    pub query: String,
    /// Maximum number of tools that the search returns.
    pub limit: u32,
    pub detail: SearchDetail,
    pub language: Language,
}

/// A message that the front sends to the engine about an open request, such as an answer of the user.
#[derive(Debug, Serialize, Deserialize)]
pub enum Input {
    /// The answer of the user to the question with this key, or an error that tells why the question was not
    /// asked.
    Answer(String, Result<Answer, AskError>),
    /// Requests all pending questions of the run. Answered with [`Event::Questions`].
    Questions,
    /// Requests the state and the progress of the run. Answered with [`Event::View`].
    View,
    /// Moves the run to the background, so that it continues after the exchange is closed. Answered with
    /// [`Event::Detached`].
    Detach,
    /// Suspends a direct call until [`Request::ResumeCall`], or until its questions time out. Answered with
    /// [`Event::Detached`].
    Suspend(CallDigest),
    /// Cancels the run, even if other exchanges follow it.
    Cancel,
    /// The AI client no longer waits for the background run. The engine ends the run, unless another request
    /// starts to wait for it within a configured time.
    Abandon,
    /// The front has notified the AI client of the changes in the previous [`Event::Changed`]. The engine may now
    /// send the next one.
    ChangesDelivered,
    /// A message of a watcher of approval questions. Answered with [`Event::Approval`].
    Approval(ApprovalInput),
}

/// An event that the engine sends to the front about an open request, before the response.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    Following(ExecutionId),
    /// A question for the user of the AI client. The front answers it with [`Input::Answer`].
    Question(OpenQuestion),
    Questions(Vec<OpenQuestion>),
    View(RunView),
    /// Answers [`Input::Detach`] and [`Input::Suspend`]. Contains the handle by which the AI client can ask for the background run, or resume the call.
    /// Contains `None` if there are too many of them, for example.
    Detached(Option<ResultHandle>),
    /// A progress message of the run, for the AI client.
    ProgressMessage(String),
    /// A notification of an upstream server during a direct call.
    Notification(ForwardedNotification),
    Changed(ListChanges),
    /// A message to a watcher of approval questions.
    Approval(ApprovalEvent),
}

/// The engine's response to a request of the front. It ends the exchange of messages about the request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    /// Each request that follows a run gets the same result, which the engine builds once.
    Run(#[serde(with = "crate::shared")] Arc<FinishedRun>),
    Json(Value),
    File(StoredFile),
    Entries(Vec<String>),
    /// What a direct call returned, with the upstream server that was called.
    Call(ServerName, DirectReply),
    Reasons(Vec<String>),
    Text(Option<String>),
    /// The access that was granted for a credential.
    Access(Result<Box<Access>, AccessRefusal>),
    Operator(OperatorResponse),
    /// The request was refused, and nothing was done for it: the grant has ended or was never issued on this connection,
    /// or the request requires a role that the grant lacks.
    Refused(AccessRefusal),
    /// The run or the tool that the request names does not exist.
    NotFound,
    /// The request is not valid. The text is the reason.
    Invalid(String),
    /// The request is not valid. The AI client gets this JSON-RPC error.
    Error(JsonRpcError),
    /// The deadline of the request has passed. The engine has ended the request.
    DeadlineExceeded,
    /// The engine failed to process the request. The exchange ends without a result.
    EngineFailed,
    /// The process of the engine cannot be reached, or ended before it answered. The text says what happened and what to
    /// do.
    Unavailable(String),
}

/// A stored file with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub handle: ResultHandle,
    pub media_type: String,
    pub content: Vec<u8>,
}

/// The number of events of one exchange that the engine may send before the front has passed on the first of them
/// ([`ToEngine::Credit`]). Events that answer an input do not count: the front asks for each of them.
pub const EVENTS_AHEAD_MAX: u32 = 64;

/// What a front does with an unanswered request if the engine's process has ended and another one is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The request may have had effects once it has begun ([`ToFront::Begun`]). It is then answered with an error.
    Never,
    /// The request only reads. It is sent once more, and no further time: it could be the reason for the end.
    Once,
    /// The request follows changes as long as the front runs.
    Always,
}

impl Event {
    /// Whether the event answers an input of the front.
    pub fn answers_input(&self) -> bool {
        match self {
            Self::Questions(_) | Self::View(_) | Self::Detached(_) => true,
            Self::Approval(event) => match event {
                ApprovalEvent::Watching
                | ApprovalEvent::Taken(_)
                | ApprovalEvent::Challenge { .. }
                | ApprovalEvent::Refused { .. } => true,
                ApprovalEvent::Ask(_) | ApprovalEvent::Gone(_) => false,
            },
            Self::Following(_)
            | Self::Question(_)
            | Self::ProgressMessage(_)
            | Self::Notification(_)
            | Self::Changed(_) => false,
        }
    }
}

impl ToEngine {
    /// Returns the exchange that the message belongs to. `None` if it belongs to no exchange.
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Request(id, ..) | Self::Input(id, _) | Self::Credit(id, _) | Self::Close(id) => Some(*id),
            Self::Listening
            | Self::InFlight { .. }
            | Self::McpSessionEnded(_)
            | Self::ConnectionClosed(_)
            | Self::Counters(_)
            | Self::BeginSpan(..)
            | Self::EndSpan(..)
            | Self::Goodbye => None,
        }
    }
}

impl ToFront {
    /// Returns the exchange that the message belongs to. `None` if it belongs to no exchange.
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Begun(id) | Self::Event(id, _) | Self::Response(id, _) => Some(*id),
            Self::Settings(_) | Self::Lifecycle(_) | Self::AccessEnded { .. } | Self::SessionMessage(_) => {
                None
            }
        }
    }
}

impl Request {
    /// Returns what a front does with this request if the engine's process ends before it has answered.
    pub fn repetition(&self) -> Repetition {
        match self {
            Self::RunCode(_)
            | Self::FollowRun(_)
            | Self::GetResult { .. }
            | Self::Call(_)
            | Self::ResumeCall(_)
            | Self::UserLogin(_) => Repetition::Never,
            Self::McpSession(_)
            | Self::Search(_)
            | Self::DescribeCatalogue
            | Self::ReadFile { .. }
            | Self::List(_)
            | Self::Health
            | Self::ServiceHealth
            | Self::Readiness
            | Self::SharedState
            | Self::Metrics
            | Self::Authenticate(_) => Repetition::Once,
            Self::FollowChanges | Self::WatchApprovals(_) => Repetition::Always,
            Self::Operator(request) if request.has_effects() => Repetition::Never,
            Self::Operator(_) => Repetition::Once,
        }
    }

    /// Returns the role that a grant must have for this request. `None` if the request needs no grant.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Authenticate(_) => None,
            Self::RunCode(_)
            | Self::FollowRun(_)
            | Self::Call(_)
            | Self::ResumeCall(_)
            | Self::McpSession(_)
            | Self::Search(_)
            | Self::DescribeCatalogue
            | Self::GetResult { .. }
            | Self::ReadFile { .. }
            | Self::List(_)
            | Self::Health
            | Self::UserLogin(_)
            | Self::FollowChanges => Some(Role::Run),
            Self::ServiceHealth | Self::Readiness | Self::SharedState | Self::Metrics => Some(Role::Operate),
            Self::Operator(request) => Some(request.role()),
            Self::WatchApprovals(_) => Some(Role::Approve),
        }
    }

    /// Returns the tag of the host that made the id which the request names. `None` if it names none: any host can serve it.
    pub fn host_tag(&self) -> Option<HostTag> {
        match self {
            Self::FollowRun(RunReference::Execution(id)) => Some(HostTag::of_execution(*id)),
            Self::FollowRun(RunReference::Handle(handle))
            | Self::GetResult { handle, .. }
            | Self::ReadFile { handle }
            | Self::ResumeCall(ResumedCall { handle, .. }) => HostTag::of_id(handle.as_str()),
            Self::McpSession(McpSessionRequest::Find { id } | McpSessionRequest::End { id }) => {
                HostTag::of_id(id)
            }
            Self::McpSession(McpSessionRequest::Deliver { to, .. }) => *to,
            Self::McpSession(McpSessionRequest::Keep { .. })
            | Self::Authenticate(_)
            | Self::RunCode(_)
            | Self::Search(_)
            | Self::DescribeCatalogue
            | Self::List(_)
            | Self::Call(_)
            | Self::FollowChanges
            | Self::Health
            | Self::ServiceHealth
            | Self::Readiness
            | Self::SharedState
            | Self::Metrics
            | Self::UserLogin(_)
            | Self::Operator(_)
            | Self::WatchApprovals(_) => None,
        }
    }

    /// Returns how long a front waits for the response to this request. `None` if it waits until it closes the exchange:
    /// the limits of the run, or the AI client, end the request.
    pub fn time_limit(&self) -> Option<Duration> {
        match self.repetition() {
            Repetition::Once => Some(READ_TIMEOUT),
            Repetition::Never | Repetition::Always => None,
        }
    }
}

#[cfg(test)]
mod tests;
