//! The connection to a helper: its messages.

use std::io;

use lockhouse_base::plain_text::plain_text;
use lockhouse_host_files::{FileAnswer, FileRequest};
use lockhouse_protocol::frame::{self, FrameDecoder};
use lockhouse_protocol::{Failure, FailureCode, Reply};
use lockhouse_upstream::{FileHelperProcess, LaunchError};
use serde::de::IgnoredAny;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What an answer may have beyond the largest result of a call, in bytes: a piece of a file, or the links of a call's paths.
/// Bound: files of the host.
const ANSWER_BYTES: usize = 1024 * 1024;
/// Maximum length of the text of an error in an answer, in characters.
const ERROR_CHARS_MAX: usize = 1_000;

/// Why a helper did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum HelperError {
    #[error("the server `files` is not available: {0}")]
    Launch(#[from] LaunchError),
    #[error("the helper in the session of the user has ended: {0}")]
    Ended(io::Error),
    #[error("the helper in the session of the user does not keep to the protocol")]
    Protocol,
    #[error("the content of the file cannot be kept: {0}")]
    Stored(io::Error),
}

impl From<HelperError> for Failure {
    fn from(error: HelperError) -> Self {
        let (code, retryable) = match error {
            HelperError::Launch(_) | HelperError::Ended(_) => (FailureCode::UpstreamUnavailable, true),
            HelperError::Protocol | HelperError::Stored(_) => (FailureCode::ToolFailed, false),
        };
        Self { retryable, ..Self::new(code, error.to_string()) }
    }
}

/// The connection to a running helper.
pub(super) struct HelperConnection {
    process: FileHelperProcess,
    decoder: FrameDecoder,
}

impl std::fmt::Debug for HelperConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelperConnection").finish_non_exhaustive()
    }
}

impl HelperConnection {
    /// `result_bytes_max` is the maximum size of the result of a call.
    pub(super) fn new(process: FileHelperProcess, result_bytes_max: usize) -> Self {
        let limit = u32::try_from(result_bytes_max.saturating_add(ANSWER_BYTES)).unwrap_or(u32::MAX);
        Self { process, decoder: FrameDecoder::new(limit) }
    }

    /// Whether the helper is known to run, and no bytes of an earlier answer are left.
    pub(super) fn is_open(&self) -> bool {
        self.process.is_running() && self.decoder.is_empty()
    }

    /// Sends a request, and receives the first message of its answer.
    pub(super) async fn ask(&mut self, request: &FileRequest) -> Result<FileAnswer, HelperError> {
        self.send(request).await?;
        self.receive().await
    }

    pub(super) async fn send(&mut self, request: &FileRequest) -> Result<(), HelperError> {
        let frame = frame::encode(request, u32::MAX).map_err(|_| HelperError::Protocol)?;
        self.process.input.write_all(&frame).await.map_err(HelperError::Ended)
    }

    pub(super) async fn receive(&mut self) -> Result<FileAnswer, HelperError> {
        loop {
            if let Some(answer) = self.decoder.next().map_err(|_| HelperError::Protocol)? {
                return Ok(answer);
            }
            match self.process.output.read(self.decoder.space()).await {
                Ok(0) => return Err(HelperError::Ended(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.decoder.received(count),
                Err(error) => return Err(HelperError::Ended(error)),
            }
        }
    }
}

/// Returns the reply in the answer to a request to make a call, whose result has at most `bytes_max` bytes.
pub(super) fn reply(answer: FileAnswer, bytes_max: usize) -> Result<Reply, HelperError> {
    let is_valid =
        |json: &[u8]| json.len() <= bytes_max && serde_json::from_slice::<IgnoredAny>(json).is_ok();
    match answer {
        FileAnswer::Performed(json) if is_valid(&json) => Ok(Ok(json)),
        FileAnswer::Failed(failure) => Ok(Err(plain_failure(failure))),
        _ => Err(HelperError::Protocol),
    }
}

/// Returns a failure of the helper with a plain message, and nothing else that it claims.
pub(super) fn plain_failure(failure: Failure) -> Failure {
    Failure::new(failure.code, plain(&failure.message))
}

/// Returns a text without control characters, and not too long.
pub(super) fn plain(text: &str) -> String {
    plain_text(text, ERROR_CHARS_MAX)
}
