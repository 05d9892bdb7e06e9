//! The messages between the supervisor and one worker. JSON travels as bytes: the supervisor and the engine parse it.

use serde::{Deserialize, Serialize};

use crate::id::{
    CallId, ExecutionId, PromptName, ResourceUri, ResultHandle, ServerName, SkillName, ToolName,
};
use crate::search::Detail;

/// Supervisor to worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The one execution that this worker is for, or the next one of its session.
    Run(Job),
    /// The answer to a [`FromWorker::Request`].
    Reply {
        /// Which request.
        call: CallId,
        /// JSON, or why there is none.
        reply: Reply,
    },
}

/// Code to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Named in nothing but messages to people.
    pub execution: ExecutionId,
    /// The program as it was submitted.
    pub code: String,
    /// The servers that this execution may know of.
    pub servers: Vec<ServerName>,
    /// Whether the worker belongs to a session: its names stay, and it waits for the session's next program.
    pub session: bool,
}

/// Worker to supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// Sealed and warmed; waits for [`ToWorker::Run`].
    Ready,
    /// Could not seal itself, and exits.
    Refused {
        /// The step that failed and the system's answer.
        reason: String,
    },
    /// A piece of what the code printed.
    Output {
        /// Where to.
        stream: Stream,
        /// At most a few KiB.
        text: String,
    },
    /// A question to the supervisor; the answer is a [`ToWorker::Reply`].
    Request {
        /// Larger than every id before it.
        call: CallId,
        /// What is asked.
        request: Request,
    },
    /// The end of a run. Whatever the worker says afterwards does not count, unless it belongs to a session.
    Done(Outcome),
}

/// An output stream of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a worker may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// `tools/call` on an upstream server.
    Call {
        /// The upstream server.
        server: ServerName,
        /// Its tool.
        tool: ToolName,
        /// A JSON object, or a JSON array of values in the order of the tool's parameters.
        arguments: Vec<u8>,
        /// How long to wait for its answer, in place of the server's configured time. The supervisor bounds it.
        timeout_ms: Option<u32>,
        /// The line of the submitted code that makes the call, from 1, where one does. The worker's own word: it is shown
        /// to people, and nothing rests on it.
        line: Option<u32>,
    },
    /// The servers, with their state: a JSON array.
    ListServers,
    /// One server's permitted tools, as the in-code modules need them: a JSON array.
    ListTools {
        /// The upstream server.
        server: ServerName,
    },
    /// One tool in full: a JSON object.
    Describe {
        /// The upstream server.
        server: ServerName,
        /// Its tool.
        tool: ToolName,
    },
    /// Permitted tools that match, best first: a JSON array.
    Search {
        /// Words.
        query: String,
        /// At most so many.
        limit: u32,
        /// How much of each.
        detail: Detail,
    },
    /// One server's permitted resources and resource templates: a JSON object.
    ListResources {
        /// The upstream server.
        server: ServerName,
    },
    /// `resources/read` on an upstream server.
    ReadResource {
        /// The upstream server.
        server: ServerName,
        /// Its resource.
        uri: ResourceUri,
    },
    /// One server's permitted prompts: a JSON object.
    ListPrompts {
        /// The upstream server.
        server: ServerName,
    },
    /// `prompts/get` on an upstream server.
    GetPrompt {
        /// The upstream server.
        server: ServerName,
        /// Its prompt.
        name: PromptName,
        /// A JSON object of strings.
        arguments: Vec<u8>,
    },
    /// A value that the supervisor keeps: JSON.
    LoadResult {
        /// As the answer named it that was cut.
        handle: ResultHandle,
    },
    /// A saved skill's code: a JSON object.
    LoadSkill {
        /// Which.
        name: SkillName,
    },
    /// Saved skills that match, best first: a JSON array.
    SearchSkills {
        /// Words.
        query: String,
        /// At most so many.
        limit: u32,
    },
}

impl Request {
    /// Whether it is answered by an upstream server, and so counts as a call. The others are questions to the supervisor.
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
            | Self::SearchSkills { .. } => false,
        }
    }
}

/// JSON bytes, or why not.
pub type Reply = Result<Vec<u8>, Failure>;

/// Why a request has no answer. Code meets it as `ToolError`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for programs.
    pub code: FailureCode,
    /// What happened and what to do, for people.
    pub message: String,
    /// The server that the request named.
    pub server: Option<String>,
    /// The tool, resource or prompt that the request named.
    pub tool: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// The kinds of failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureCode {
    /// The policy does not permit it.
    Denied,
    /// The arguments do not fit the tool or prompt.
    InvalidArguments,
    /// No such server, tool, resource or prompt.
    UnknownTool,
    /// The upstream server took too long.
    Timeout,
    /// The upstream server is not connected, or died.
    UpstreamUnavailable,
    /// The tool ran and says that it failed.
    ToolFailed,
    /// The answer does not fit into a message.
    ResultTooLarge,
    /// A person was to decide, and did not approve it or could not be asked.
    ApprovalDeclined,
    /// A limit of the policy is used up, for a while or for this execution.
    RateLimited,
    /// No such result or skill, or not any more.
    NotFound,
}

impl FailureCode {
    /// The code as programs see it.
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

/// How the code ended, as the worker tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It ran to its end. JSON of its value, if it had one.
    Value(Option<Vec<u8>>),
    /// It raised an error and did not catch it.
    Error(CodeError),
    /// It was stopped by the supervisor's soft interrupt.
    Interrupted(CodeError),
    /// It used up its CPU time.
    CpuLimit(CodeError),
    /// It used up its memory.
    MemoryLimit(CodeError),
}

/// An error of the submitted code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeError {
    /// The language's own name of the error, such as `ValueError`.
    pub kind: String,
    /// [`FailureCode::as_str`] when it is a `ToolError`.
    pub code: Option<String>,
    /// The error's own words.
    pub message: String,
    /// Line of the submitted code, from 1.
    pub line: Option<u32>,
    /// Column of that line, from 1.
    pub column: Option<u32>,
    /// Frames of the submitted code alone.
    pub traceback: Option<String>,
    /// What to do instead.
    pub hint: Option<String>,
}
