//! The engine's side of the helper that uses files in the session of a person. Nothing that the helper answers is believed:
//! it may be a program of the agent.

mod connection;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_host_files::{
    Access, FileAnswer, FileCall, FilePattern, FileRequest, HelperSettings, HostFileSettings, Resolution,
    StagedContent, UnusablePath,
};
use lockhouse_policies::ResolvedPaths;
use lockhouse_protocol::{Failure, Reply};
use lockhouse_upstream::Launchers;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::failures::file_system_too_slow;
use connection::{HelperConnection, HelperError, plain, plain_failure, reply};

/// Maximum length of a path and of the description of a file in an answer, in bytes.
/// Bound: files of the host.
const TEXT_BYTES_MAX: usize = 4_096;

/// Maximum size of the result of a write in bytes: the path, and the size of the file.
const WRITTEN_BYTES_MAX: usize = 64 * 1024;

/// The helper in the session of the person. It is started when it is needed. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct FileHelper(Arc<Helper>);

#[derive(Debug)]
struct Helper {
    launchers: Launchers,
    settings: HelperSettings,
    /// The folders of the configuration.
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    file_bytes: u64,
    /// Maximum size of the result of a call in bytes.
    result_bytes_max: usize,
    /// The running helper. It answers one request after the other; one that did not answer a request is ended.
    running: Mutex<Option<HelperConnection>>,
}

impl FileHelper {
    /// `result_bytes_max` is the maximum size of the result of a call.
    pub(super) fn new(settings: &HostFileSettings, launchers: Launchers, result_bytes_max: usize) -> Self {
        let roots = |patterns: &[FilePattern]| {
            patterns.iter().map(|pattern| pattern.root().to_owned()).collect::<Vec<_>>()
        };
        Self(Arc::new(Helper {
            launchers,
            read: roots(&settings.read),
            write: roots(&settings.write),
            file_bytes: settings.file_bytes,
            settings: settings.into(),
            result_bytes_max,
            running: Mutex::default(),
        }))
    }

    /// Returns the helper for other settings; this one, if they are the same.
    pub(super) fn reconfigured(&self, settings: &HostFileSettings) -> Self {
        match self.0.settings == settings.into() {
            true => self.clone(),
            false => Self::new(settings, self.0.launchers.clone(), self.0.result_bytes_max),
        }
    }

    pub(super) async fn resolve(
        &self,
        patience: Duration,
        access: Access,
        path: String,
    ) -> Result<Result<Resolution, UnusablePath>, Failure> {
        let request = FileRequest::Resolve { access, path };
        self.exchange(patience, async |helper| match helper.ask(&request).await? {
            FileAnswer::Resolved(Ok(resolved)) => {
                let is_text =
                    |text: &str| text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control);
                let is_valid = resolved.target.starts_with('/')
                    && is_text(&resolved.target)
                    && resolved.replaces.as_deref().is_none_or(is_text);
                if is_valid { Ok(Ok(resolved)) } else { Err(HelperError::Protocol) }
            }
            FileAnswer::Resolved(Err(UnusablePath { is_invalid, reason })) => {
                Ok(Err(UnusablePath { is_invalid, reason: plain(&reason) }))
            }
            _ => Err(HelperError::Protocol),
        })
        .await
    }

    pub(super) async fn resolve_links(&self, patience: Duration, paths: Vec<String>) -> ResolvedPaths {
        let request = FileRequest::ResolveLinks(paths.clone());
        let resolved = self.exchange(patience, async |helper| match helper.ask(&request).await? {
            FileAnswer::Links(links) => Ok(links),
            _ => Err(HelperError::Protocol),
        });
        let mut links = resolved.await.unwrap_or_default();
        links.retain(|path, target| {
            paths.contains(path) && target.starts_with('/') && target.len() <= TEXT_BYTES_MAX
        });
        links
    }

    pub(super) async fn perform(&self, patience: Duration, call: FileCall, path: String) -> Reply {
        let most = self.0.result_bytes_max;
        let bytes_max = u32::try_from(most).unwrap_or(u32::MAX);
        let request = FileRequest::Perform { call, path, bytes_max };
        self.exchange(patience, async |helper| reply(helper.ask(&request).await?, most)).await?
    }

    /// Receives the content of a file into `file`, and returns it with its size.
    pub(super) async fn read(
        &self,
        patience: Duration,
        path: String,
        file: File,
    ) -> Result<(File, u64), Failure> {
        let (request, most) = (FileRequest::Read { path }, self.0.file_bytes);
        let received = self.exchange(patience, async |helper| {
            let bytes = match helper.ask(&request).await? {
                FileAnswer::Content { bytes } if bytes <= most => bytes,
                FileAnswer::Failed(failure) => return Ok(Err(plain_failure(failure))),
                _ => return Err(HelperError::Protocol),
            };
            let (mut file, mut left) = (tokio::fs::File::from_std(file), bytes);
            while left > 0 {
                match helper.receive().await? {
                    FileAnswer::Piece(piece) if !piece.is_empty() && piece.len() as u64 <= left => {
                        file.write_all(&piece).await.map_err(HelperError::Stored)?;
                        left -= piece.len() as u64;
                    }
                    FileAnswer::Failed(failure) => return Ok(Err(plain_failure(failure))),
                    _ => return Err(HelperError::Protocol),
                }
            }
            file.flush().await.map_err(HelperError::Stored)?;
            Ok(Ok((file.into_std().await, bytes)))
        });
        received.await?
    }

    pub(super) async fn write(
        &self,
        patience: Duration,
        path: String,
        content: Arc<StagedContent>,
        replaces: Option<String>,
    ) -> Reply {
        let request = FileRequest::Write { path, replaces, bytes: content.bytes() };
        let written = self.exchange(patience, async |helper| {
            helper.send(&request).await?;
            let mut offset = 0;
            while offset < content.bytes() {
                let content = content.clone();
                let piece = tokio::task::spawn_blocking(move || content.piece(offset)).await;
                let piece = piece.map_err(std::io::Error::other).and_then(|piece| piece);
                let piece = piece.map_err(HelperError::Stored)?;
                offset += piece.len() as u64;
                helper.send(&FileRequest::Piece(piece)).await?;
            }
            reply(helper.receive().await?, WRITTEN_BYTES_MAX)
        });
        written.await?
    }

    /// Conducts one exchange with the helper, which is started before if it does not run. If the exchange fails or takes too
    /// long, the helper is ended.
    async fn exchange<T>(
        &self,
        patience: Duration,
        conduct: impl AsyncFnOnce(&mut HelperConnection) -> Result<T, HelperError>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + patience;
        let conducted = timeout_at(deadline, async {
            let mut running = self.0.running.lock().await;
            let mut helper = match running.take().filter(HelperConnection::is_open) {
                Some(helper) => helper,
                None => self.start(Instant::now() + patience / 2).await?,
            };
            let conducted = conduct(&mut helper).await?;
            *running = Some(helper);
            Ok::<_, HelperError>(conducted)
        });
        conducted.await.map_err(|_| file_system_too_slow())?.map_err(Failure::from)
    }

    async fn start(&self, deadline: Instant) -> Result<HelperConnection, HelperError> {
        let Helper { launchers, settings, read, write, .. } = &*self.0;
        let process = launchers.start_file_helper(read.clone(), write.clone(), deadline).await?;
        let mut helper = HelperConnection::new(process, self.0.result_bytes_max);
        match helper.ask(&FileRequest::Begin(settings.clone())).await? {
            FileAnswer::Begun => Ok(helper),
            _ => Err(HelperError::Protocol),
        }
    }
}
