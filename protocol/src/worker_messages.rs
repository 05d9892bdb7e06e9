//! The messages between the supervisor and one worker process. JSON values are transferred as bytes, which
//! only the supervisor and the interpreter in the worker parse.

use serde::{Deserialize, Serialize};

use crate::failure_code::FailureCode;
use crate::id::{
    CallId, ExecutionId, PromptName, ResourceUri, ResultHandle, ServerName, SkillName, ToolName,
};
use crate::search_options::SearchDetail;

/// A message from the supervisor to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Tells the worker to run a program. Only a worker of a session runs more than one program.
    Run(Job),
    /// The reply to a [`FromWorker::Request`].
    Reply {
        /// The id of the request.
        call: CallId,
        /// The JSON result, or the failure.
        #[serde(with = "crate::reply_encoding")]
        reply: Reply,
    },
    /// The supervisor has sent the worker a signal that interrupts the program. A signal that arrives just before the worker
    /// starts to wait for a message does not end that wait; this message does.
    Interrupt,
}

/// A program that a worker must run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The id of the execution. The worker's behaviour does not depend on it.
    pub execution: ExecutionId,
    /// The program as it was submitted.
    pub code: String,
    /// The names of the upstream servers that the program may use.
    pub servers: Vec<ServerName>,
    /// Whether the worker belongs to a session. If so, the program's variables are kept after the run, and the worker
    /// waits for the session's next program.
    pub session: bool,
    /// Whether the program is only checked: its syntax, and the calls that it will make.
    pub check_only: bool,
    /// The entries of the tools that the program mentions, so that the worker need not request them. This is a JSON
    /// array, with one array for each tool: the server, the name in the program, and the entry as in the reply to
    /// [`WorkerRequest::ListTools`]. Empty if the program mentions no known tool. The worker requests other tools when the
    /// program uses them.
    #[serde(with = "serde_bytes")]
    pub tools: Vec<u8>,
    /// The files of the host that the program may try to open: a JSON object with the members `given` (pairs of the
    /// name and the size in bytes of each file that the person gave to this run), `read` and `write` (folders in which
    /// the program may read and write files), `server` (the name of the server `files`) and `advice` (the error text for other paths). Empty if there are
    /// no such files.
    #[serde(with = "serde_bytes")]
    pub files: Vec<u8>,
    /// The servers that the request to run code left out: a JSON object with the error text for each name. Empty if it
    /// left none out.
    #[serde(with = "serde_bytes")]
    pub left_out: Vec<u8>,
}

/// A message from a worker to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The worker has entered its sandbox, has warmed up if that was requested, and waits for [`ToWorker::Run`].
    Ready,
    /// The worker could not enter its sandbox, and exits.
    Refused {
        /// The step of the sandbox setup that failed, and the error of the operating system.
        reason: String,
    },
    /// A piece of the program's output.
    Output {
        /// The output stream that the program wrote to.
        stream: Stream,
        /// The printed text. The worker sends long output in pieces of a few KiB.
        text: String,
    },
    /// A request of the program. The supervisor answers it with a [`ToWorker::Reply`].
    Request {
        /// The id of the request, larger than the ids of all earlier requests of this worker.
        call: CallId,
        /// What the program requests.
        request: WorkerRequest,
    },
    /// The outcome of a run. It is the last message of a worker, unless the worker belongs to a session.
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

/// A request that a program in a worker makes of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerRequest {
    /// Calls a tool of an upstream server (`tools/call` of MCP).
    Call {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's tool.
        tool: ToolName,
        /// The arguments of the call: a JSON object, or a JSON array of values in the order of the tool's parameters.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
        /// Describes each value in the arguments that the worker decoded from the JSON text of an earlier result. If
        /// the tool's schema does not permit such a value, the supervisor sends the JSON text as a string instead.
        decoded: Vec<DecodedArgument>,
        /// How long to wait for the result, in milliseconds; `None` for the server's configured timeout. The supervisor
        /// limits this time.
        timeout_ms: Option<u32>,
        /// The line of the submitted code that makes the call, counted from 1; `None` if unknown. The supervisor only
        /// displays the line, because the worker could report a wrong one.
        line: Option<u32>,
    },
    /// Requests the list of upstream servers with the states of their connections; the reply is a JSON array.
    ListServers,
    /// Requests those tools of an upstream server that the policy permits. The reply is a JSON array that contains each
    /// tool under the name by which code imports it.
    ListTools {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// Requests the full definition of one tool, or what a server says about itself; the reply is a JSON object.
    Describe {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's tool; `None` for the server itself.
        tool: Option<ToolName>,
    },
    /// Searches the tools that the policy permits. The reply is a JSON object: `tools` has the tools that were found,
    /// best match first, and `missing` has the servers that could not be searched, with the reasons.
    Search {
        /// The words to search for.
        query: String,
        /// The maximum number of results.
        limit: u32,
        /// The amount of detail about each tool.
        detail: SearchDetail,
    },
    /// Requests those resources and resource templates of an upstream server that the policy permits; the reply is a
    /// JSON object.
    ListResources {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// Reads a resource of an upstream server (`resources/read` of MCP).
    ReadResource {
        /// The name of the upstream server.
        server: ServerName,
        /// The URI of the server's resource.
        uri: ResourceUri,
    },
    /// Requests those prompts of an upstream server that the policy permits; the reply is a JSON object.
    ListPrompts {
        /// The name of the upstream server.
        server: ServerName,
    },
    /// Gets a prompt of an upstream server (`prompts/get` of MCP).
    GetPrompt {
        /// The name of the upstream server.
        server: ServerName,
        /// The name of the server's prompt.
        name: PromptName,
        /// The arguments of the prompt: a JSON object whose values are strings.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
    },
    /// Requests a result that the supervisor stored, because it was too long for an answer to the AI client; the reply
    /// is the result as JSON.
    LoadResult {
        /// The handle of the stored result. The answer with the truncated result contains this handle.
        handle: ResultHandle,
    },
    /// Requests the code of a saved skill; the reply is a JSON object.
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
    /// Checks the calls that a program will make, before the program runs. The reply is a JSON object: its field
    /// `findings` has the failures of calls that cannot succeed, and its field `tools` describes the tools that are
    /// called.
    CheckCalls {
        /// The planned calls. Calls after the first [`PLANNED_CALLS_MAX`] are not checked.
        calls: Vec<PlannedCall>,
    },
    /// Opens a file that the program then reads in pieces. A file of the host counts as a call of the built-in server
    /// `files`. The reply is a JSON object: `file` is the number of the open file, and `bytes` its size.
    OpenFile {
        /// The file.
        source: FileSource,
        /// The line of the submitted code that opens the file, counted from 1; `None` if unknown. The supervisor only
        /// displays the line, because the worker could report a wrong one.
        line: Option<u32>,
    },
    /// Requests the next piece of a file that [`WorkerRequest::OpenFile`] opened. The reply has the bytes themselves, and is
    /// not JSON. It is empty at the end of the file, which is then closed.
    ReadPiece {
        /// The number of the open file.
        file: u32,
    },
    /// Begins to send a file, whose content follows in pieces. The reply is a JSON object: `file` is the number of the
    /// new file, and `piece` the maximum size of a piece in bytes.
    CreateFile {
        /// Where the file is written.
        target: FileTarget,
        /// The size of the whole file in bytes.
        bytes: u64,
        /// The line of the submitted code that writes the file, counted from 1; `None` if unknown. The supervisor only
        /// displays the line, because the worker could report a wrong one.
        line: Option<u32>,
    },
    /// Sends the next piece of a file that [`WorkerRequest::CreateFile`] began. With the last byte the content is complete; a
    /// file of 0 bytes has one empty piece. The reply is the JSON text `true` if the content is complete, otherwise
    /// `false`. A complete file of the answer is stored; one of the host is written by [`WorkerRequest::FinishFile`].
    WritePiece {
        /// The number of the file.
        file: u32,
        /// The next bytes of the file.
        #[serde(with = "serde_bytes")]
        piece: Vec<u8>,
    },
    /// Writes a file of the host whose content is complete. It counts as a call of the built-in server `files`: what is
    /// decided about and recorded is the whole content.
    FinishFile {
        /// The number of the file.
        file: u32,
        /// The line of the submitted code that writes the file, counted from 1; `None` if unknown. The supervisor only
        /// displays the line, because the worker could report a wrong one.
        line: Option<u32>,
    },
}

/// A file that a program reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileSource {
    /// The file of the host with this path. The policy decides whether the program may read it.
    Host(String),
    /// The file with this name, which the person gave to the run.
    Given(String),
    /// The stored result or file with this handle.
    Stored(ResultHandle),
}

/// Where a program writes a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileTarget {
    /// The file of the host with this path. The policy decides whether the program may write it.
    Host(String),
    /// A file with this name in the answer to the run.
    Answer(String),
}

/// The maximum number of planned calls of one program that are checked before it runs.
/// Bound: workers and programs.
pub const PLANNED_CALLS_MAX: usize = 64;

/// A call that a program makes on every path and whose failure it cannot catch, so that the call can be checked before
/// the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The name of the upstream server.
    pub server: ServerName,
    /// The name of the server's tool.
    pub tool: ToolName,
    /// The arguments as in [`WorkerRequest::Call`], with `null` for each value that is not known before the run; `None` if
    /// not even the names of the arguments are known.
    #[serde(with = "serde_bytes")]
    pub arguments: Option<Vec<u8>>,
    /// The line of the submitted code that makes the call, counted from 1; `None` if unknown. The supervisor only
    /// displays the line, because the worker could report a wrong one.
    pub line: Option<u32>,
}

/// A value in a call's arguments that the worker decoded from the JSON text of an earlier result. If the tool's schema
/// does not permit the value, the supervisor sends the JSON text as a string instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedArgument {
    /// The JSON pointer (RFC 6901) to the value in the arguments, such as `/content` or `/0`.
    pub pointer: String,
    /// The JSON text from which the worker decoded the value at `pointer`; `None` if the program has changed the value
    /// since.
    pub text: Option<String>,
}

impl WorkerRequest {
    /// Whether the request counts as a call: an upstream server must answer it, or it reads or writes a file of the
    /// host. The supervisor answers other requests itself.
    #[must_use]
    pub fn goes_upstream(&self) -> bool {
        match self {
            Self::Call { .. }
            | Self::ListResources { .. }
            | Self::ReadResource { .. }
            | Self::ListPrompts { .. }
            | Self::GetPrompt { .. }
            | Self::OpenFile { source: FileSource::Host(_), .. }
            | Self::FinishFile { .. } => true,
            Self::ListServers
            | Self::ListTools { .. }
            | Self::Describe { .. }
            | Self::Search { .. }
            | Self::LoadResult { .. }
            | Self::LoadSkill { .. }
            | Self::SearchSkills { .. }
            | Self::CheckCalls { .. }
            | Self::OpenFile { .. }
            | Self::ReadPiece { .. }
            | Self::CreateFile { .. }
            | Self::WritePiece { .. } => false,
        }
    }
}

/// The reply to a request of a worker: the result as JSON text, or the reason why the request failed.
pub type Reply = Result<Vec<u8>, Failure>;

/// The error of a request that failed. Programs receive it as `ToolError`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, which programs can test for.
    pub code: FailureCode,
    /// What happened and what the program should do, in words for users and models.
    pub message: String,
    /// The upstream server that the request named; `None` if it named none.
    pub server: Option<String>,
    /// The tool, resource or prompt that the request named; `None` if it named none.
    pub tool: Option<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The result in which the server reported the failure, as JSON in the form of a tool's result. `None` if it has no
    /// more than the message, or the server reported no result.
    pub result: Option<Vec<u8>>,
}

impl Failure {
    /// Creates a failure without the names of a server and a tool, which does not get better with time.
    #[must_use]
    pub const fn new(code: FailureCode, message: String) -> Self {
        Self { code, message, server: None, tool: None, retryable: false, result: None }
    }
}

/// The outcome of a run, as the worker reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The program ran to its end. Contains the program's value as JSON; `None` if the program has no value.
    Value(#[serde(with = "serde_bytes")] Option<Vec<u8>>),
    /// The program raised an error that it did not catch.
    Error(CodeError),
    /// An interrupt ended the program. The supervisor interrupts a program at its time limit, when its run is
    /// cancelled, or when it exceeds a limit on requests or output; a program can also raise an interrupt itself.
    Interrupted(CodeError),
    /// The program exceeded its limit of CPU time.
    CpuLimit(CodeError),
    /// The program exceeded its limit of memory.
    MemoryLimit(CodeError),
    /// The program ran to its end without the value that it was probably meant to return. The text tells how to
    /// return one.
    NoValue(String),
}

/// The error that ended the submitted program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeError {
    /// The name of the error's class in the program's language, such as `ValueError`.
    pub kind: String,
    /// The code of the failure ([`FailureCode::as_str`]) if the error is a `ToolError`; otherwise `None`.
    pub code: Option<String>,
    /// The error's message.
    pub message: String,
    /// The line of the submitted code in which the error occurred, counted from 1; `None` if unknown.
    pub line: Option<u32>,
    /// The column in which the error occurred, counted from 1, in the line that `line` names; `None` if unknown.
    pub column: Option<u32>,
    /// The traceback as text, without frames outside of the submitted code; `None` if no frame is left.
    pub traceback: Option<String>,
    /// A hint about what the program should do instead; `None` if there is no hint.
    pub hint: Option<String>,
}
