//! A process of any account that is asked through its control socket.

use std::os::fd::AsRawFd as _;
use std::time::Duration;

use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_link::{OperatorClient, OperatorError};
use lockhouse_messages::{OperatorRequest, OperatorResponse};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::control_sockets::ControlSocketFile;
use super::processes::runs_lockhouse;

/// Maximum time in which a process must accept a connection and answer a request.
/// Bound: engines and fronts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes that are read from a process for one request. The connection of a process that sends more
/// ends there.
/// Bound: engines and fronts.
const ANSWER_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Why a process has no answer to a request.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum AskFailure {
    #[error("it does not answer")]
    NoAnswer,
    #[error("this version of Lockhouse does not know the request")]
    OtherVersion,
    #[error("it refused: {0}")]
    Refused(String),
}

impl AskFailure {
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::NoAnswer)
    }
}

impl From<OperatorError> for AskFailure {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::OtherVersion => Self::OtherVersion,
            OperatorError::Refused(reason) => Self::Refused(reason),
            OperatorError::NoAnswer => Self::NoAnswer,
        }
    }
}

/// A process with a control socket.
pub(in crate::cli) struct AskedProcess {
    socket: ControlSocketFile,
    pid: u32,
}

impl AskedProcess {
    /// Connects to the process behind a socket. `None` if nothing listens there, or something that is no Lockhouse process
    /// of the account that owns the socket: then nothing is sent.
    pub(super) async fn connect(socket: ControlSocketFile) -> Option<Self> {
        let mut process = Self { socket, pid: 0 };
        let stream = timeout(ANSWER_TIMEOUT, process.open()).await.ok()??;
        process.pid = stream.peer_cred().ok()?.pid()?.try_into().ok()?;
        Some(process)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn uid(&self) -> u32 {
        self.socket.uid
    }

    /// Sends a request, on a connection of its own, and waits for the response.
    ///
    /// # Errors
    /// Why there is no response.
    pub(super) async fn ask(&self, request: &OperatorRequest) -> Result<OperatorResponse, AskFailure> {
        let asking = async {
            let stream = self.open().await.ok_or(AskFailure::NoAnswer)?;
            let same =
                stream.peer_cred().ok().and_then(|peer| peer.pid()).is_some_and(|pid| pid as u32 == self.pid);
            if !same {
                return Err(AskFailure::NoAnswer);
            }
            let (reader, writer) = stream.into_split();
            let bounded = tokio::io::join(reader.take(ANSWER_BYTES_MAX), writer);
            Ok(OperatorClient::connect(bounded).await?.ask(request.clone()).await?)
        };
        timeout(ANSWER_TIMEOUT, asking).await.unwrap_or(Err(AskFailure::NoAnswer))
    }

    /// Opens a connection, and checks who is at its other end before anything is sent.
    async fn open(&self) -> Option<UnixStream> {
        // The path of the descriptor is the socket itself, whatever has become of its name.
        let path = format!("/proc/self/fd/{}", self.socket.file.as_raw_fd());
        let stream = UnixStream::connect(path).await.ok()?;
        let peer = stream.peer_cred().ok()?;
        let pid = u32::try_from(peer.pid()?).ok()?;
        // A socket to which a user's name leads could be that of any service. A process in another PID namespace has
        // another number in the name of its socket.
        let is_lockhouse = self.socket.named_pid == pid || runs_lockhouse(pid);
        (peer.uid() == self.socket.uid && is_lockhouse && !refuses_peer(Some(pid))).then_some(stream)
    }
}
