//! The messages between the supervisor and one worker. JSON values travel as bytes, which only the supervisor and the
//! language engine parse.

use serde::{Deserialize, Serialize};

use crate::id::{
    CallId, ExecutionId, PromptName, ResourceUri, ResultHandle, ServerName, SkillName, ToolName,
};
use crate::search_options::SearchDetail;

/// A message from the supervisor to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Runs the worker's only execution, or the next run of its session.
    Run(Job),
    /// The reply to a [`FromWorker::Request`].
    Reply {
        /// The id of the request.
        call: CallId,
        /// The JSON result, or the failure.
        reply: Reply,
    },
}

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The id of the execution; used only in messages for users.
    pub execution: ExecutionId,
    /// The program as it was submitted.
    pub code: String,
    /// The servers that this execution may use.
    pub servers: Vec<ServerName>,
    /// Whether the worker belongs to a session: it then keeps its variables and waits for the session's next program.
    pub session: bool,
    /// Whether the program is only checked: its syntax, and the calls that it will make.
    pub check_only: bool,
}

/// A message from a worker to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The worker is sealed and warmed up, and waits for [`ToWorker::Run`].
    Ready,
    /// The worker could not seal itself, and exits.
    Refused {
        /// The step of the sandbox setup that failed, and the system's error.
        reason: String,
    },
    /// A piece of the program's output.
    Output {
        /// The output stream that the program wrote to.
        stream: Stream,
        /// The printed text, of at most a few KiB.
        text: String,
    },
    /// A request to the supervisor, which answers it with a [`ToWorker::Reply`].
    Request {
        /// The id of the request, larger than the ids of all earlier requests of this worker.
        call: CallId,
        /// The request.
        request: Request,
    },
    /// The outcome of a run. Further messages of the worker are ignored, unless it belongs to a session.
    Done(Outcome),
}

/// An output stream of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
}

/// A request that a worker may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// `tools/call` on an upstream server.
    Call {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's tool.
        tool: ToolName,
        /// The arguments of the call: a JSON object, or a JSON array of values in the order of the tool's parameters.
        arguments: Vec<u8>,
        /// The parts of the arguments that are results of earlier calls, decoded from JSON text.
        decoded: Vec<DecodedArgument>,
        /// How long to wait for the result, in place of the server's configured timeout. The supervisor bounds it.
        timeout_ms: Option<u32>,
        /// The line of the submitted code that makes the call, counted from 1, if known. The worker reports it, so it
        /// is only displayed and never trusted.
        line: Option<u32>,
    },
    /// Requests the servers with their states, a JSON array.
    ListServers,
    /// Requests one server's permitted tools, as code imports them: a JSON array.
    ListTools {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// Requests the full definition of one tool, a JSON object.
    Describe {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's tool.
        tool: ToolName,
    },
    /// Searches the permitted tools; the reply is a JSON array, best match first.
    Search {
        /// The words to search for.
        query: String,
        /// The maximum number of results.
        limit: u32,
        /// The amount of detail about each tool.
        detail: SearchDetail,
    },
    /// Requests one server's permitted resources and resource templates, a JSON object.
    ListResources {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// `resources/read` on an upstream server.
    ReadResource {
        /// The name of the upstream server.
        server: ServerName,
        /// The URI of the server's resource.
        uri: ResourceUri,
    },
    /// Requests one server's permitted prompts, a JSON object.
    ListPrompts {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// `prompts/get` on an upstream server.
    GetPrompt {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's prompt.
        name: PromptName,
        /// The arguments of the prompt: a JSON object of strings.
        arguments: Vec<u8>,
    },
    /// Requests a result that the supervisor stored, as JSON.
    LoadResult {
        /// The handle that the truncated result names.
        handle: ResultHandle,
    },
    /// Requests the code of a saved skill, a JSON object.
    LoadSkill {
        /// The name of the skill.
        name: SkillName,
    },
    /// Searches the saved skills; the reply is a JSON array, best match first.
    SearchSkills {
        /// The words to search for.
        query: String,
        /// The maximum number of results.
        limit: u32,
    },
    /// Checks the calls that a program will make, before it runs. The reply is a JSON object: `findings` has the failures
    /// of calls that cannot succeed, `tools` the module entries of the tools that are called.
    CheckCalls {
        /// The calls. Those after the first [`PLANNED_CALLS_MAX`] are not checked.
        calls: Vec<PlannedCall>,
    },
}

/// The maximum number of planned calls of one program that are checked before it runs.
pub const PLANNED_CALLS_MAX: usize = 64;

/// A call that a program will make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The name of the upstream server.
    pub server: ServerName,
    /// The name of the server's tool.
    pub tool: ToolName,
    /// The arguments in the form of [`Request::Call`], with `null` for each value that is not known before the run; `None`
    /// if their names are not known.
    pub arguments: Option<Vec<u8>>,
    /// The line of the submitted code that makes the call, counted from 1, if known. Only displayed and never trusted.
    pub line: Option<u32>,
}

/// A part of a call's arguments that is the result of an earlier call, decoded from JSON text. Where the tool's schema
/// permits only a string, the supervisor sends the text in place of the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedArgument {
    /// The JSON pointer (RFC 6901) of the value in the arguments, such as `/content` or `/0`.
    pub pointer: String,
    /// The text from which the value was decoded; `None` if the program has changed the value.
    pub text: Option<String>,
}

impl Request {
    /// Whether the request goes to an upstream server, and therefore counts as a call. The supervisor itself answers
    /// all other requests.
    #[must_use]
    pub fn goes_upstream(&self) -> bool {
        match self {
            Self::Call { .. }
            | Self::ListResources { .. }
            | Self::ReadResource { .. }
            | Self::ListPrompts { .. }
            | Self::GetPrompt { .. } => true,
            Self::ListServers
            | Self::ListTools { .. }
            | Self::Describe { .. }
            | Self::Search { .. }
            | Self::LoadResult { .. }
            | Self::LoadSkill { .. }
            | Self::SearchSkills { .. }
            | Self::CheckCalls { .. } => false,
        }
    }
}

/// The reply to a request: the JSON result as bytes, or the failure.
pub type Reply = Result<Vec<u8>, Failure>;

/// Why a request failed. Programs receive it as `ToolError`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, for programs.
    pub code: FailureCode,
    /// What happened and what to do, in words for users and models.
    pub message: String,
    /// The server that the request named; `None` if it named none.
    pub server: Option<String>,
    /// The tool, resource or prompt that the request named; `None` if it named none.
    pub tool: Option<String>,
    /// Whether the same request may succeed if it is repeated later.
    pub retryable: bool,
}

/// The kinds of failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureCode {
    /// The policy does not permit the call.
    Denied,
    /// The arguments do not fit the tool or prompt.
    InvalidArguments,
    /// The server, tool, resource or prompt does not exist.
    UnknownTool,
    /// The upstream server did not answer in time.
    Timeout,
    /// The upstream server is not connected, or was lost during the call.
    UpstreamUnavailable,
    /// The tool ran and reported an error.
    ToolFailed,
    /// The result is larger than a message to the worker may be.
    ResultTooLarge,
    /// The call requires approval, and a user declined it or could not be asked.
    ApprovalDeclined,
    /// A limit of the policy is used up, for a while or for this execution.
    RateLimited,
    /// The result or skill does not exist, or no longer exists.
    NotFound,
}

impl FailureCode {
    /// Returns the code as programs see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::InvalidArguments => "invalid_arguments",
            Self::UnknownTool => "unknown_tool",
            Self::Timeout => "timeout",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::ToolFailed => "tool_failed",
            Self::ResultTooLarge => "result_too_large",
            Self::ApprovalDeclined => "approval_declined",
            Self::RateLimited => "rate_limited",
            Self::NotFound => "not_found",
        }
    }
}

/// The outcome of a run, as the worker reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The program ran to its end. The JSON of its value, if it has one.
    Value(Option<Vec<u8>>),
    /// The program raised an error that it did not catch.
    Error(CodeError),
    /// The supervisor's interrupt stopped the program.
    Interrupted(CodeError),
    /// The program used up its CPU time.
    CpuLimit(CodeError),
    /// The program used up its memory.
    MemoryLimit(CodeError),
    /// The program ran to its end and has no value, probably by mistake. The text tells how to get one.
    NoValue(String),
}

/// An error of the submitted program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeError {
    /// The error's name in the language, such as `ValueError`.
    pub kind: String,
    /// The code of the failure ([`FailureCode::as_str`]) if the error is a `ToolError`; otherwise `None`.
    pub code: Option<String>,
    /// The error's message.
    pub message: String,
    /// The line of the submitted code in which the error occurred, counted from 1; `None` if unknown.
    pub line: Option<u32>,
    /// The column of that line, counted from 1; `None` if unknown.
    pub column: Option<u32>,
    /// The frames of the traceback that are in the submitted code.
    pub traceback: Option<String>,
    /// A hint about what the program should do instead; `None` if there is none.
    pub hint: Option<String>,
}
