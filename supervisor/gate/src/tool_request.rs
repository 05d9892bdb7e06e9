//! A request to an upstream server, and the record of its outcome.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use lockhouse_audit::CallSubject;
use lockhouse_catalog::{SideEffects, is_named_as_read};
use lockhouse_policies::{CallTarget, Listing};
use lockhouse_protocol::{CallId, CallOutcome, ServerName, WorkerRequest};

use super::RunContext;
use lockhouse_host_files::StagedContent;

/// A request of a worker or AI client to an upstream server, for a tool, a resource, a prompt or a list.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The id that identifies the request in the audit log.
    pub id: uuid::Uuid,
    pub server: ServerName,
    pub item: CallTarget,
    /// The line of the program that made the request, as reported by the worker. `None` if it is unknown.
    pub line: Option<u32>,
    /// What was done with the call: whether it was sent or stored as a draft. Unset for a call that was refused
    /// or still waits. Clones of the request share the value: the task that makes the call sets it, and the task
    /// that records an abandoned call reads it.
    dispatch: Arc<OnceLock<Dispatch>>,
    /// For a file whose content follows in pieces: its size in bytes, once it is open. `None` for other requests. Clones
    /// share the value.
    streamed_bytes: Option<Arc<OnceLock<u64>>>,
    /// For a file that is written: its content, if the program has sent it in pieces. `None` for other requests.
    content: Option<Arc<StagedContent>>,
}

/// Creates the id of a request: a UUID of version 7. It only identifies the request, so it needs no random numbers of
/// the kernel, which would take two system calls.
fn new_id() -> uuid::Uuid {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let random = fastrand::u128(..).to_ne_bytes();
    let random = random.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(now.as_millis() as u64, &random).into_uuid()
}

/// What was done with a call that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dispatch {
    /// The call was sent to its server. Contains the side effects that the server declares for the tool.
    Sent(SideEffects),
    /// The call was to save a skill. No approver was available, so the skill was stored as a draft.
    Draft,
}

impl Dispatch {
    /// Returns the side effects that the call may have had, which the answer of the run lists.
    fn changes(self) -> SideEffects {
        match self {
            Self::Sent(changes) => changes,
            Self::Draft => SideEffects::Declared,
        }
    }
}

impl ToolRequest {
    /// Converts a request of a worker to a request to an upstream server. Returns `None` if Lockhouse answers the
    /// request itself, without an upstream server.
    pub(super) fn from_request(request: &WorkerRequest) -> Option<Self> {
        let (server, item) = match request {
            WorkerRequest::Call { server, tool, .. } => (server, CallTarget::Tool(tool.clone())),
            WorkerRequest::ReadResource { server, uri } => (server, CallTarget::Resource(uri.clone())),
            WorkerRequest::GetPrompt { server, name, .. } => (server, CallTarget::Prompt(name.clone())),
            WorkerRequest::ListResources { server } => (server, CallTarget::List(Listing::Resources)),
            WorkerRequest::ListPrompts { server } => (server, CallTarget::List(Listing::Prompts)),
            WorkerRequest::ListServers
            | WorkerRequest::ListTools { .. }
            | WorkerRequest::Describe { .. }
            | WorkerRequest::Search { .. }
            | WorkerRequest::LoadResult { .. }
            | WorkerRequest::LoadSkill { .. }
            | WorkerRequest::SearchSkills { .. }
            | WorkerRequest::CheckCalls { .. }
            | WorkerRequest::OpenFile { .. }
            | WorkerRequest::ReadPiece { .. }
            | WorkerRequest::CreateFile { .. }
            | WorkerRequest::WritePiece { .. }
            | WorkerRequest::FinishFile { .. } => return None,
        };
        let line = match request {
            WorkerRequest::Call { line, .. } => *line,
            _ => None,
        };
        Some(Self { line, ..Self::new(server.clone(), item) })
    }

    /// Creates a request with a new id.
    pub fn new(server: ServerName, item: CallTarget) -> Self {
        let (dispatch, streamed_bytes, content) = (Arc::default(), None, None);
        Self { id: new_id(), server, item, line: None, dispatch, streamed_bytes, content }
    }

    /// Creates a request to open a file whose content follows in pieces.
    pub(super) fn streamed(server: ServerName, item: CallTarget, line: Option<u32>) -> Self {
        Self { line, streamed_bytes: Some(Arc::default()), ..Self::new(server, item) }
    }

    /// Creates a request to write a file whose content has arrived.
    pub(super) fn writing(
        server: ServerName,
        item: CallTarget,
        line: Option<u32>,
        content: StagedContent,
    ) -> Self {
        Self { line, content: Some(Arc::new(content)), ..Self::new(server, item) }
    }

    /// Returns the content of the file that is written, if the program has sent it in pieces.
    pub(super) fn content(&self) -> Option<&Arc<StagedContent>> {
        self.content.as_ref()
    }

    /// Whether the content of a file follows in pieces.
    pub(super) fn is_streamed(&self) -> bool {
        self.streamed_bytes.is_some()
    }

    /// Records the size of the opened file.
    pub(super) fn set_streamed_bytes(&self, bytes: u64) {
        let _ = self.streamed_bytes.as_ref().map(|size| size.set(bytes));
    }

    /// Returns the size of the result of this request: that of the opened file, or else that of the reply.
    pub(super) fn result_bytes(&self, reply: usize) -> usize {
        let streamed = self.streamed_bytes.as_ref().and_then(|size| size.get());
        streamed.map_or(reply, |bytes| usize::try_from(*bytes).unwrap_or(usize::MAX))
    }

    /// Returns this request with another item (tool, resource or prompt) of the same server.
    pub(super) fn with_item(self, item: CallTarget) -> Self {
        Self { item, ..self }
    }

    /// Records what was done with the call (sent or stored as a draft). Has no effect if this is recorded
    /// already.
    pub(super) fn record_dispatch(&self, dispatch: Dispatch) {
        let _ = self.dispatch.set(dispatch);
    }

    /// Returns whether the call was sent or stored as a draft; `None` if neither has happened.
    pub(super) fn dispatch(&self) -> Option<Dispatch> {
        self.dispatch.get().copied()
    }

    /// Returns the side effects that the call may have had so far.
    pub(super) fn changes(&self) -> SideEffects {
        self.dispatch().map_or(SideEffects::None, Dispatch::changes)
    }

    /// Returns the data that identify the call in audit records.
    pub(super) fn subject<'a>(&'a self, run: &'a RunContext, call: CallId) -> CallSubject<'a> {
        CallSubject {
            execution: run.execution(),
            call,
            id: self.id,
            client: run.client(),
            server: &self.server,
            item: &self.item,
            line: self.line,
        }
    }
}

/// The outcome of one call, for the list of calls in the answer that the AI client gets after a run.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub server: String,
    /// The tool, resource or prompt that was called, or the list that was requested.
    pub item: CallTarget,
    pub outcome: CallOutcome,
    /// The line of the program that made the call, as reported by the worker. `None` if it is unknown.
    pub line: Option<u32>,
    /// The side effects that the call may have had.
    pub changes: SideEffects,
    /// Duration of the call in milliseconds.
    pub ms: f64,
    /// Length of the reply in bytes; 0 if the call failed.
    pub bytes: usize,
    /// Whether the server sent content that is not in the value of the call, or in the message of its failure.
    pub has_content_aside: bool,
}

impl CallRecord {
    /// `bytes` is the length of the reply. `changes` are the side effects that the call may have had.
    pub(super) fn new(
        request: &ToolRequest,
        outcome: CallOutcome,
        took: Duration,
        bytes: usize,
        changes: SideEffects,
    ) -> Self {
        let (server, item) = (request.server.to_string(), request.item.clone());
        let ms = took.as_micros() as f64 / 1000.0;
        Self { server, item, outcome, line: request.line, changes, ms, bytes, has_content_aside: false }
    }

    /// Returns whether the call probably changed nothing, although its server does not declare that: the tool has a name
    /// that says that it reads.
    pub fn is_likely_read(&self) -> bool {
        self.changes == SideEffects::Undeclared
            && matches!(self.item, CallTarget::Tool(_))
            && is_named_as_read(&self.item.to_string())
    }

    /// Returns `SERVER.NAME`: the called server and the name of the called tool, resource or prompt.
    pub fn title(&self) -> String {
        format!("{}.{}", self.server, self.item)
    }
}
