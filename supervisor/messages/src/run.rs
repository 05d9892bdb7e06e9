//! The data about runs of programs that front and engine exchange: the request, the progress and the
//! result.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_protocol::{ExecutionId, Language, ResultHandle};
use serde::{Deserialize, Serialize};

use crate::{RequestClaims, RunAnswer, UserWait};

/// A request to run a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCode {
    pub language: Language,
    pub code: String,
    /// The requested time limit of the run. `None`, or a limit above the configured maximum, means the configured
    /// maximum.
    pub timeout: Option<Duration>,
    /// The upstream servers and tools that the program may use, each written as `NAME`, `NAME.TOOL` or
    /// `NAME.PREFIX*`. `None` for all servers and tools that the AI client may use.
    pub servers: Option<Vec<String>>,
    /// The name of the session (a worker that keeps its state between runs) in which the program runs. The
    /// session is started if it does not exist. `None` for a run outside of sessions.
    pub session: Option<String>,
    /// Whether the answer goes to a program and not to a model, as the AI client declares. This is the case if the
    /// AI client itself runs code that calls `run_code`. The answer can then be larger.
    pub for_program: bool,
    /// The ids that the AI client gave the request, for the records.
    #[serde(default)]
    pub claims: RequestClaims,
    /// Whether another host of the cluster has no worker for the program, and asks this one to run it only if it has one at once.
    /// Otherwise, the response is [`Response::NotFound`](crate::Response::NotFound).
    #[serde(default)]
    pub is_offered: bool,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The time since the worker received the code of the run.
    pub elapsed: Duration,
    /// The number of tool calls of the run that have been answered.
    pub finished_calls: usize,
    /// The tool calls of the run without an answer so far: the number of calls for each server and tool.
    pub in_flight: BTreeMap<String, usize>,
    /// The oldest question to a user or approver that the run waits for. `None` if no question is pending.
    pub waiting_for: Option<UserWait>,
    /// The end of what the program has written to standard output so far.
    pub stdout: String,
}

/// The state of a run that has not ended, at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunView {
    pub execution: ExecutionId,
    /// The time since the run was requested.
    pub age: Duration,
    /// When the run was requested, in RFC 3339 format.
    pub begun: String,
    pub state: RunState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunState {
    /// The run waits for a worker.
    Queued,
    Running(Progress),
    /// The run has a worker but reports no progress any more, because it is ending.
    Ending,
}

impl RunView {
    /// Returns the progress of the run. Returns `None` if the run waits for a worker or is ending.
    pub fn progress(&self) -> Option<&Progress> {
        match &self.state {
            RunState::Running(progress) => Some(progress),
            RunState::Queued | RunState::Ending => None,
        }
    }
}

/// The final result of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishedRun {
    pub execution: ExecutionId,
    /// Whether the run was cancelled.
    pub cancelled: bool,
    /// When the run was requested, in RFC 3339 format.
    pub begun: String,
    /// When the run ended, in RFC 3339 format.
    pub ended: String,
    pub answer: RunAnswer,
    /// The files (such as images) that the program returned. First come those that were removed from the value: there,
    /// each file is replaced by its number in this list, starting at 1.
    pub files: Vec<ResultFile>,
}

impl FinishedRun {
    /// Returns this run with an error in place of its answer, for the case that the answer is too large to be
    /// stored.
    pub fn without_result(&self) -> Self {
        Self {
            begun: self.begun.clone(),
            ended: self.ended.clone(),
            answer: self.answer.without_result(),
            files: Vec::new(),
            ..*self
        }
    }
}

/// A file that a program returned and that the AI client gets separately: a file below `/out`, or one that was removed
/// from the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// The content, if the answer contains it; otherwise, the answer contains a link with the handle.
    #[serde(with = "crate::base64_bytes")]
    pub content: Option<Vec<u8>>,
    pub mime_type: String,
    pub name: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// The handle of the stored file. `None` if it is not stored.
    pub handle: Option<ResultHandle>,
}

/// The types of images that are content of an answer. Models reject an answer with an image of another type.
const INLINE_IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// What AI clients display or play of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Image,
    Audio,
    /// Nothing: the file is a link or an embedded resource.
    None,
}

impl ResultFile {
    /// Returns as what AI clients display the content of the file.
    pub fn media(&self) -> Media {
        if INLINE_IMAGES.contains(&self.mime_type.as_str()) {
            Media::Image
        } else if self.mime_type.starts_with("audio/") {
            Media::Audio
        } else {
            Media::None
        }
    }
}

/// The beginning of the URI of a stored file. The rest is its handle.
pub const RESULT_URI_PREFIX: &str = "lockhouse://result/";
