//! Native functions that the Python library calls to send requests and output to the supervisor.
//!
//! A function that waits for the reply to a request returns a pair: `(True, JSON text)`, or after a failure `(False,
//! (code, message, server, tool, retryable))`.

use std::os::fd::AsRawFd;
use std::sync::{OnceLock, PoisonError, RwLock};

use lockhouse_protocol::{
    DecodedArgument, Failure, FailureCode, FileSource, FileTarget, InvalidName, PlannedCall, PromptName,
    Reply, ResourceUri, ResultHandle, SearchDetail, ServerName, SkillName, Stream, ToolName, WorkerRequest,
};
use lockhouse_worker::tool_host::ToolHost;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The worker's connection to the supervisor. Not set in the zygote.
static HOST: RwLock<Option<&'static dyn ToolHost>> = RwLock::new(None);

/// The memory limit of the worker's programs, in bytes. Not set in the zygote.
static MEMORY_BYTES: OnceLock<u64> = OnceLock::new();

/// Sets the connection that the functions of this module use for requests to the supervisor, in place of that of the warm-up,
/// and the memory limit of programs in bytes.
pub(crate) fn connect(host: &'static dyn ToolHost, memory_bytes: u64) {
    *HOST.write().unwrap_or_else(PoisonError::into_inner) = Some(host);
    let _ = MEMORY_BYTES.set(memory_bytes);
}

fn host() -> PyResult<&'static dyn ToolHost> {
    let host = *HOST.read().unwrap_or_else(PoisonError::into_inner);
    host.ok_or_else(|| PyRuntimeError::new_err("only a worker can reach the supervisor"))
}

type Pair<'py> = (bool, Bound<'py, PyAny>);

fn pair(py: Python<'_>, reply: Reply) -> PyResult<Pair<'_>> {
    match reply {
        Ok(json) => Ok((true, PyString::from_bytes(py, &json)?.into_any())),
        Err(failure) => {
            let Failure { code, message, server, tool, retryable, result } = failure;
            let result = result.and_then(|json| String::from_utf8(json).ok());
            let fields = (code.as_str(), message, server, tool, retryable, result);
            Ok((false, fields.into_pyobject(py)?.into_any()))
        }
    }
}

/// Sends a request to the supervisor and waits for the reply. For an invalid request, returns the failure without
/// asking the supervisor. The wait releases the interpreter lock, so that Python signal handlers can run. If a handler
/// raises an exception, the wait ends, and this function raises that exception.
fn ask<E: ToString>(py: Python<'_>, request: Result<WorkerRequest, E>) -> PyResult<Pair<'_>> {
    let request = match request {
        Ok(request) => request,
        Err(invalid) => return pair(py, Err(unknown(invalid.to_string()))),
    };
    let reply = reply(py, request)?;
    pair(py, reply)
}

/// Sends a request to the supervisor and waits for the reply, as [`ask`] does.
fn reply(py: Python<'_>, request: WorkerRequest) -> PyResult<Reply> {
    let host = host()?;
    let mut raised = None;
    let reply = py.detach(|| {
        host.ask(request, &mut || {
            raised = Python::attach(|py| py.check_signals().err());
            raised.is_some()
        })
    });
    match (reply, raised) {
        (Some(reply), _) => Ok(reply),
        (None, Some(error)) => Err(error),
        (None, None) => Err(PyRuntimeError::new_err("the request was given up")),
    }
}

fn unknown(message: String) -> Failure {
    Failure::new(FailureCode::UnknownTool, message)
}

fn call_request(
    server: &str,
    tool: &str,
    arguments: &[u8],
    timeout_ms: Option<u32>,
    line: Option<u32>,
    decoded: DecodedTexts,
) -> Result<WorkerRequest, InvalidName> {
    let (server, tool) = (ServerName::new(server)?, ToolName::new(tool)?);
    let decoded = decoded.into_iter().map(|(pointer, text)| DecodedArgument { pointer, text }).collect();
    Ok(WorkerRequest::Call { server, tool, arguments: arguments.to_vec(), decoded, timeout_ms, line })
}

/// The values in the arguments of a call that are results of earlier calls, and that the worker decoded from JSON text.
/// Each has its JSON pointer within the arguments, and the text from which it was decoded. The text is `None` if the
/// program changed the value.
type DecodedTexts = Vec<(String, Option<String>)>;

/// Calls a tool and waits for its result. `arguments` is the JSON object of the arguments, and `line` the line of the
/// program that makes the call. Without `timeout_ms`, the configured timeout applies.
#[pyfunction]
#[pyo3(signature = (server, tool, arguments, timeout_ms=None, line=None, decoded=Vec::new()))]
pub(crate) fn call<'py>(
    py: Python<'py>,
    server: &str,
    tool: &str,
    arguments: &[u8],
    timeout_ms: Option<u32>,
    line: Option<u32>,
    decoded: DecodedTexts,
) -> PyResult<Pair<'py>> {
    ask(py, call_request(server, tool, arguments, timeout_ms, line, decoded))
}

/// Lists the permitted resources and resource templates of a server.
#[pyfunction]
pub(crate) fn list_resources<'py>(py: Python<'py>, server: &str) -> PyResult<Pair<'py>> {
    ask(py, ServerName::new(server).map(|server| WorkerRequest::ListResources { server }))
}

/// Reads a resource of a server by its URI.
#[pyfunction]
pub(crate) fn read_resource<'py>(py: Python<'py>, server: &str, uri: &str) -> PyResult<Pair<'py>> {
    match ServerName::new(server) {
        Ok(server) => ask(py, ResourceUri::new(uri).map(|uri| WorkerRequest::ReadResource { server, uri })),
        Err(invalid) => ask(py, Err(invalid)),
    }
}

/// Lists the permitted prompts of a server.
#[pyfunction]
pub(crate) fn list_prompts<'py>(py: Python<'py>, server: &str) -> PyResult<Pair<'py>> {
    ask(py, ServerName::new(server).map(|server| WorkerRequest::ListPrompts { server }))
}

/// Gets a prompt of a server. `arguments` is the JSON object of the prompt's arguments.
#[pyfunction]
pub(crate) fn get_prompt<'py>(
    py: Python<'py>,
    server: &str,
    name: &str,
    arguments: &[u8],
) -> PyResult<Pair<'py>> {
    let arguments = arguments.to_vec();
    match ServerName::new(server) {
        Ok(server) => {
            ask(py, PromptName::new(name).map(|name| WorkerRequest::GetPrompt { server, name, arguments }))
        }
        Err(invalid) => ask(py, Err(invalid)),
    }
}

/// Lists the upstream servers and their connection states.
#[pyfunction]
pub(crate) fn list_servers(py: Python<'_>) -> PyResult<Pair<'_>> {
    ask(py, Ok::<_, InvalidName>(WorkerRequest::ListServers))
}

/// Lists the permitted tools of a server.
#[pyfunction]
pub(crate) fn list_tools<'py>(py: Python<'py>, server: &str) -> PyResult<Pair<'py>> {
    ask(py, ServerName::new(server).map(|server| WorkerRequest::ListTools { server }))
}

/// Returns the full description of a tool, with its schemas, as JSON; without a tool, what the server says about itself.
#[pyfunction]
#[pyo3(signature = (server, tool=None))]
pub(crate) fn describe<'py>(py: Python<'py>, server: &str, tool: Option<&str>) -> PyResult<Pair<'py>> {
    let request = ServerName::new(server).and_then(|server| {
        Ok(WorkerRequest::Describe { server, tool: tool.map(ToolName::new).transpose()? })
    });
    ask(py, request)
}

/// Searches the tools that the policy permits. `limit` is the maximum number of results, and `detail` the amount of
/// detail about each: `names`, `signatures` or `full`.
#[pyfunction]
#[pyo3(signature = (query, limit, detail="signatures"))]
pub(crate) fn search<'py>(py: Python<'py>, query: String, limit: u32, detail: &str) -> PyResult<Pair<'py>> {
    let no_detail = || r#"the detail is one of "names", "signatures" and "full""#;
    let detail = SearchDetail::parse(detail).ok_or_else(no_detail);
    ask(py, detail.map(|detail| WorkerRequest::Search { query, limit, detail }))
}

/// Loads the stored result with this handle.
#[pyfunction]
pub(crate) fn load_result<'py>(py: Python<'py>, handle: &str) -> PyResult<Pair<'py>> {
    match ResultHandle::new(handle) {
        Ok(handle) => ask(py, Ok::<_, InvalidName>(WorkerRequest::LoadResult { handle })),
        Err(invalid) => {
            pair(py, Err(Failure { code: FailureCode::NotFound, ..unknown(invalid.to_string()) }))
        }
    }
}

/// Loads the code of a saved skill.
#[pyfunction]
pub(crate) fn load_skill<'py>(py: Python<'py>, name: &str) -> PyResult<Pair<'py>> {
    ask(py, SkillName::new(name).map(|name| WorkerRequest::LoadSkill { name }))
}

/// Searches the saved skills. `limit` is the maximum number of results.
#[pyfunction]
pub(crate) fn search_skills(py: Python<'_>, query: String, limit: u32) -> PyResult<Pair<'_>> {
    ask(py, Ok::<_, InvalidName>(WorkerRequest::SearchSkills { query, limit }))
}

/// A planned call: server, tool, arguments as JSON, and line. The arguments are `None` if the program text does not
/// determine the names of the arguments.
type Planned = (String, String, Option<Vec<u8>>, u32);

/// Asks the supervisor to check the planned calls of a program before the program runs. If a name is invalid, returns a
/// failure without asking the supervisor.
#[pyfunction]
pub(crate) fn check_calls(py: Python<'_>, planned: Vec<Planned>) -> PyResult<Pair<'_>> {
    let call = |(server, tool, arguments, line): Planned| {
        let (server, tool) = (ServerName::new(server)?, ToolName::new(tool)?);
        Ok::<_, InvalidName>(PlannedCall { server, tool, arguments, line: Some(line) })
    };
    let calls: Result<Vec<PlannedCall>, InvalidName> = planned.into_iter().map(call).collect();
    ask(py, calls.map(|calls| WorkerRequest::CheckCalls { calls }))
}

/// Queues a tool call, with the parameters of `call`, and returns its number; [`drain`] returns its reply. Returns -1
/// for an invalid name.
#[pyfunction]
#[pyo3(signature = (server, tool, arguments, timeout_ms=None, line=None, decoded=Vec::new()))]
pub(crate) fn start_call(
    server: &str,
    tool: &str,
    arguments: &[u8],
    timeout_ms: Option<u32>,
    line: Option<u32>,
    decoded: DecodedTexts,
) -> PyResult<i64> {
    let host = host()?;
    let request = call_request(server, tool, arguments, timeout_ms, line, decoded);
    Ok(request.map_or(-1, |request| host.start(request).0.into()))
}

/// Sends the queued requests and output to the supervisor. Requests above the limit of requests in flight stay queued.
#[pyfunction]
pub(crate) fn flush(py: Python<'_>) -> PyResult<()> {
    let host = host()?;
    py.detach(|| host.flush());
    Ok(())
}

/// Returns the replies that have arrived for calls of [`start_call`]. Each has the number of the call, whether the call
/// succeeded, and its result or failure.
#[pyfunction]
pub(crate) fn drain(py: Python<'_>) -> PyResult<Vec<(u32, bool, Bound<'_, PyAny>)>> {
    let host = host()?;
    let replies = py.detach(|| host.drain());
    let triple = |(call, reply): (lockhouse_protocol::CallId, Reply)| {
        pair(py, reply).map(|(ok, payload)| (call.0, ok, payload))
    };
    replies.into_iter().map(triple).collect()
}

/// Returns the descriptor that becomes readable when the supervisor sends data.
#[pyfunction]
pub(crate) fn fileno() -> PyResult<i32> {
    Ok(host()?.socket().as_raw_fd())
}

/// Returns the descriptor that becomes readable when another thread has read a reply for [`drain`] from the socket.
#[pyfunction]
pub(crate) fn wake_fileno() -> PyResult<i32> {
    Ok(host()?.reply_event().as_raw_fd())
}

/// Sends output to the supervisor: stream 1 is stdout, 2 is stderr.
#[pyfunction]
pub(crate) fn write(py: Python<'_>, stream: i32, text: &str) -> PyResult<()> {
    let host = host()?;
    let stream = if stream == 2 { Stream::Stderr } else { Stream::Stdout };
    py.detach(|| host.print(stream, text));
    Ok(())
}

/// Returns the memory limit of the worker's programs, in bytes; in the zygote, which runs no program, the largest number.
#[pyfunction]
pub(crate) fn memory_bytes() -> u64 {
    MEMORY_BYTES.get().copied().unwrap_or(u64::MAX)
}

/// Opens a file to read it in pieces. `kind` is `host` (a path), `given` (a name) or `stored` (a handle).
#[pyfunction]
pub(crate) fn open_file<'py>(
    py: Python<'py>,
    kind: &str,
    name: &str,
    line: Option<u32>,
) -> PyResult<Pair<'py>> {
    let source = match kind {
        "host" => Ok(FileSource::Host(name.to_owned())),
        "given" => Ok(FileSource::Given(name.to_owned())),
        _ => ResultHandle::new(name).map(FileSource::Stored),
    };
    match source {
        Ok(source) => ask(py, Ok::<_, InvalidName>(WorkerRequest::OpenFile { source, line })),
        Err(invalid) => {
            pair(py, Err(Failure { code: FailureCode::NotFound, ..unknown(invalid.to_string()) }))
        }
    }
}

/// Returns the next piece of an open file as bytes, which are empty at its end.
#[pyfunction]
pub(crate) fn read_piece(py: Python<'_>, file: u32) -> PyResult<Pair<'_>> {
    match reply(py, WorkerRequest::ReadPiece { file })? {
        Ok(piece) => Ok((true, PyBytes::new(py, &piece).into_any())),
        failed => pair(py, failed),
    }
}

/// Begins to write a file of `bytes` bytes in pieces. `kind` is `host` (a path) or `answer` (a name).
#[pyfunction]
pub(crate) fn create_file<'py>(
    py: Python<'py>,
    kind: &str,
    name: String,
    bytes: u64,
    line: Option<u32>,
) -> PyResult<Pair<'py>> {
    let target = if kind == "host" { FileTarget::Host(name) } else { FileTarget::Answer(name) };
    ask(py, Ok::<_, InvalidName>(WorkerRequest::CreateFile { target, bytes, line }))
}

/// Sends the next piece of a file.
#[pyfunction]
pub(crate) fn write_piece<'py>(py: Python<'py>, file: u32, piece: &[u8]) -> PyResult<Pair<'py>> {
    ask(py, Ok::<_, InvalidName>(WorkerRequest::WritePiece { file, piece: piece.to_vec() }))
}

/// Writes a file of the host whose pieces have all been sent.
#[pyfunction]
pub(crate) fn finish_file(py: Python<'_>, file: u32, line: Option<u32>) -> PyResult<Pair<'_>> {
    ask(py, Ok::<_, InvalidName>(WorkerRequest::FinishFile { file, line }))
}

/// Raises MemoryError if a block of `bytes` bytes cannot be allocated now. The check writes nothing to the block, so it
/// uses no physical memory.
#[pyfunction]
pub(crate) fn require_memory(bytes: usize) -> PyResult<()> {
    let mut room = Vec::<u8>::new();
    let reserved = room.try_reserve_exact(bytes);
    // Otherwise the compiler may leave the allocation out.
    std::hint::black_box(&room);
    reserved.map_err(|_| PyMemoryError::new_err(()))
}
