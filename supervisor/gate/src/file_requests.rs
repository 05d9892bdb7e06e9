//! Handles the requests of programs to open, read and write files in pieces.

use std::time::Duration;

use lockhouse_audit::CallAuthority;
use lockhouse_policies::{Call, Decision, Effect};
use lockhouse_protocol::{
    CallId, CallOutcome, Failure, FailureCode, FileSource, FileTarget, Reply, ResultHandle, WorkerRequest,
};
use serde_json::{Map, Value, json};

use super::code_server::files_tool;
use super::denials::denial_failure;
use super::failures::file_system_too_slow;
use super::file_access::FileAccess;
use super::run_files::{GivenFile, RETURNED_MAX, RunFiles};
use super::schema::run_blocking;
use super::tool_request::ToolRequest;
use super::transfers::{ReadContent, Reading, Target, Transfer, Written, piece_bytes, write_piece};
use super::{Gate, RunContext};
use lockhouse_host_files::{Content, FileCall, PathRefusal, file_failure, require_size};
use lockhouse_host_files::{StagedContent, StagedFile};
use lockhouse_stores::result_files::media_type;

/// Maximum time for one step of a transfer, since a file system may be remote or may hang.
/// Bound: files of the host.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a step of a transfer on a blocking thread.
async fn on_disk<T: Send + 'static>(
    files: &RunFiles,
    step: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = run_blocking(&files.slot, STEP_TIMEOUT, step).await;
    done.unwrap_or_else(|| Err(file_system_too_slow()))
}

fn opened(files: &RunFiles, content: ReadContent, bytes: u64) -> Reply {
    let file = files.transfers.add(Transfer::Reading(Reading { content, bytes, offset: 0 }))?;
    Ok(json!({"file": file, "bytes": bytes}).to_string().into_bytes())
}

impl Gate {
    /// Answers a request about a file that is not a call of the server `files`.
    pub(super) async fn serve_file(&self, run: &RunContext, call: CallId, request: WorkerRequest) -> Reply {
        match request {
            WorkerRequest::OpenFile { source: FileSource::Given(name), .. } => {
                self.open_given(run, call, &name).await
            }
            WorkerRequest::OpenFile { source: FileSource::Stored(handle), .. } => {
                self.open_stored(run, &handle).await
            }
            WorkerRequest::CreateFile { target: FileTarget::Answer(name), bytes, .. } => {
                let created = self.create_answer_file(run, &name, bytes).await;
                created.inspect_err(|failed| run.files.add_left_out(&name, failed.message.clone()))
            }
            WorkerRequest::CreateFile { target: FileTarget::Host(path), bytes, line } => {
                self.stage_host_file(run, call, path, bytes, line).await
            }
            WorkerRequest::ReadPiece { file } => self.read_next_piece(run, file).await,
            WorkerRequest::WritePiece { file, piece } => self.write_next_piece(run, file, piece).await,
            WorkerRequest::FinishFile { .. } => {
                Err(Failure::new(FailureCode::NotFound, "no complete file has this number".into()))
            }
            _ => Err(Failure::new(FailureCode::UnknownTool, "this is no request about a file".into())),
        }
    }

    /// Opens a file that the person gave to the run. The person has decided about it already, so the policy is not asked
    /// for a permission; but a rule or list of the policy that denies the call holds.
    async fn open_given(&self, run: &RunContext, call: CallId, name: &str) -> Reply {
        let given = run.files.given.iter().find(|given| given.name == name);
        let given = given
            .ok_or_else(|| Failure::new(FailureCode::NotFound, format!("no file {name:?} was given")))?;
        let GivenFile { path, file, bytes, .. } = given;
        let item = files_tool("read")
            .ok_or_else(|| Failure::new(FailureCode::UnknownTool, "there is no tool read".into()))?;
        let request = ToolRequest::new(self.files.settings().name.clone(), item);
        let arguments: Map<String, Value> =
            [("path".to_owned(), Value::from(path.to_string_lossy()))].into_iter().collect();
        let mut asked = Call::new(&request.server, request.item.clone())
            .with_client(run.client().cloned())
            .with_arguments(arguments);
        self.wait_for_requirements_look().await;
        let policy = self.policy.current();
        asked.resolved_paths = self.resolve_links(run, &policy, &asked).await;
        let permitted = match policy.decide_given(asked) {
            Decision::Allow(permitted) => permitted,
            Decision::Deny(denial) => {
                let (reason, rule) = (denial.to_string(), denial.location.as_ref());
                self.record_denial(request.subject(run, call), Effect::Deny, &reason, rule);
                return Err(denial_failure(&denial));
            }
            Decision::Ask(_) => {
                return Err(Failure::new(FailureCode::Denied, "the file needs an approval".into()));
            }
        };
        let authority = CallAuthority::default();
        self.audit.call(request.subject(run, call), &permitted, authority).map_err(|error| {
            tracing::error!("{error}");
            Failure::new(FailureCode::Denied, format!("the file was not opened: {error}"))
        })?;
        let size = usize::try_from(*bytes).unwrap_or(usize::MAX);
        if let Err(error) =
            self.audit.outcome(request.subject(run, call), CallOutcome::Ok, Duration::ZERO, size)
        {
            tracing::error!("{error}");
        }
        let content = file.try_clone();
        let content = content.map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))?;
        opened(&run.files, ReadContent::File(content), *bytes)
    }

    /// Opens a stored result or file of the run.
    async fn open_stored(&self, run: &RunContext, handle: &ResultHandle) -> Reply {
        let owner = run.principal().owner();
        let (files, wanted) = (self.result_files.clone(), handle.clone());
        let found = on_disk(&run.files, move || Ok(files.open(owner, &wanted))).await?;
        if let Some((stored, file)) = found {
            return opened(&run.files, ReadContent::File(file), stored.bytes);
        }
        match self.results.get(owner, handle) {
            Ok(json) => {
                let bytes = json.len() as u64;
                opened(&run.files, ReadContent::Text(json), bytes)
            }
            Err(not_kept) => Err(Failure::new(FailureCode::NotFound, not_kept.to_string())),
        }
    }

    /// Begins to store a file that the program returns.
    async fn create_answer_file(&self, run: &RunContext, name: &str, bytes: u64) -> Reply {
        if run.files.stored_count() >= RETURNED_MAX {
            let message =
                format!("a run returns at most {RETURNED_MAX} files; put more into one archive (zipfile)");
            return Err(Failure::new(FailureCode::RateLimited, message));
        }
        let (store, owner, name) = (self.result_files.clone(), run.principal().owner(), name.to_owned());
        let begin = move || {
            let kind = media_type(&name).to_owned();
            store
                .begin(owner, &name, kind)
                .map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))
        };
        let writer = on_disk(&run.files, begin).await?;
        self.writing(&run.files, Target::Answer(writer), bytes)
    }

    /// Begins to receive the content of a file of the host. What is written is decided when the content is complete
    /// ([`WorkerRequest::FinishFile`]); a program that may write no file at all is refused now.
    async fn stage_host_file(
        &self,
        run: &RunContext,
        call: CallId,
        path: String,
        bytes: u64,
        line: Option<u32>,
    ) -> Reply {
        let item = files_tool("write")
            .ok_or_else(|| Failure::new(FailureCode::UnknownTool, "there is no tool write".into()))?;
        let mut request = ToolRequest::new(self.files.settings().name.clone(), item);
        request.line = line;
        self.refuse_never_permitted(run, call, &request)?;
        require_size(self.files.server(), bytes).map_err(|error| file_failure(&path, &error))?;
        let store = self.result_files.clone();
        let create = move || {
            store.unnamed_file().map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))
        };
        let file = on_disk(&run.files, create).await?;
        self.writing(&run.files, Target::Host(StagedFile::new(path, file)), bytes)
    }

    fn writing(&self, files: &RunFiles, to: Target, bytes: u64) -> Reply {
        let file = files.transfers.add(Transfer::Writing { to, left: bytes })?;
        let piece = piece_bytes(self.reply_bytes_max);
        Ok(json!({"file": file, "piece": piece}).to_string().into_bytes())
    }

    async fn read_next_piece(&self, run: &RunContext, number: u32) -> Reply {
        let files = &run.files;
        let Transfer::Reading(mut reading) = files.transfers.take(number)? else {
            return Err(Failure::new(FailureCode::NotFound, "the file is written, not read".into()));
        };
        let most = piece_bytes(self.reply_bytes_max);
        let read = move || reading.next_piece(most).map(|piece| (piece, reading));
        let (piece, reading) = on_disk(files, read).await?;
        if !piece.is_empty() {
            files.transfers.put_back(number, Transfer::Reading(reading));
        }
        Ok(piece)
    }

    async fn write_next_piece(&self, run: &RunContext, number: u32, piece: Vec<u8>) -> Reply {
        let files = &run.files;
        let Transfer::Writing { to, left } = files.transfers.take(number)? else {
            return Err(Failure::new(FailureCode::NotFound, "the file is read, not written".into()));
        };
        let name = to.name();
        let written = on_disk(files, move || write_and_finish(to, left, &piece)).await;
        match written {
            Ok(Finished::No(transfer)) => {
                files.transfers.put_back(number, transfer);
                Ok(b"false".to_vec())
            }
            Ok(Finished::Host(content)) => {
                files.transfers.put_back(number, Transfer::Complete(content));
                Ok(b"true".to_vec())
            }
            Ok(Finished::Answer(stored)) => {
                files.add_stored(stored);
                Ok(b"true".to_vec())
            }
            Err(failed) => {
                if let Some(name) = name {
                    files.add_left_out(&name, failed.message.clone());
                }
                Err(failed)
            }
        }
    }

    /// Carries out a permitted call of the server `files`. `arguments` have the path without symbolic links.
    pub(super) async fn use_host_file(
        &self,
        files: FileAccess,
        run: &RunContext,
        request: &ToolRequest,
        arguments: &Map<String, Value>,
        timeout: Option<Duration>,
    ) -> Reply {
        // The requirements may have changed while an approver was asked.
        if files.server().is_withdrawn() {
            return Err(Failure::new(FailureCode::Denied, PathRefusal::Withdrawn.to_string()));
        }
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (slot, patience) = (&run.files.slot, timeout.unwrap_or(STEP_TIMEOUT));
        match FileCall::parse(&request.item, arguments)? {
            FileCall::Read { .. } if request.is_streamed() => {
                let (file, bytes) = files.open(slot, patience, path, &self.result_files).await?;
                request.set_streamed_bytes(bytes);
                opened(&run.files, ReadContent::File(file), bytes)
            }
            FileCall::Write { content: Content::Staged, replaces }
                if let Some(content) = request.content() =>
            {
                files.write(slot, patience, path, content.clone(), replaces).await
            }
            call => files.perform(slot, patience, call, path).await,
        }
    }
}

/// The result of writing a piece of a file.
enum Finished {
    No(Transfer),
    Host(StagedContent),
    Answer(lockhouse_stores::result_files::StoredFile),
}

fn write_and_finish(to: Target, left: u64, piece: &[u8]) -> Result<Finished, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::new(FailureCode::ToolFailed, error.to_string());
    Ok(match write_piece(to, left, piece)? {
        Written::Partly(transfer) => Finished::No(transfer),
        Written::Whole(Target::Host(file)) => {
            Finished::Host(file.complete().map_err(|error| failed(&error))?)
        }
        Written::Whole(Target::Answer(file)) => {
            Finished::Answer(file.finish().map_err(|error| failed(&error))?)
        }
    })
}
