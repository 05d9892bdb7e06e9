//! The process of the signer, as the engine's process sees it. It reads the certificate and the key itself: this process never
//! has the key.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use lockhouse_base::process_roles as role;
use lockhouse_engine::supervisor::HttpProcess;
use lockhouse_front::http::{ServedCertificate, TlsSettings};
use lockhouse_link::send_socket;
use lockhouse_pool::{ServiceParent, verify_service};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::process_name::ServiceProcess;
use super::service_process::{ProcessError, spawn};
use crate::cli::tls_signer::{self, SignerReport};

const SIGNER: ServiceProcess = ServiceProcess::Signer;
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of its report in bytes: a chain of certificates as JSON.
const REPORT_BYTES_MAX: u64 = 512 * 1024;
/// How long the front waits for a signature, in seconds.
const SIGNATURE_TIMEOUT_S: i64 = 1;

/// Why there is no signer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignerError {
    /// The files cannot be used. The text says what to change.
    #[error("{0}")]
    Unusable(String),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// A signer that is sealed. When this value is dropped, the process ends as soon as no front uses it any more.
pub(super) struct SignerProcess {
    control: OwnedFd,
    certificate: ServedCertificate,
    pid: u32,
    /// Cancelled when the process has ended.
    ended: CancellationToken,
}

impl SignerProcess {
    /// Starts the process, waits until it has read the files and is sealed, and verifies the seal in `/proc`.
    pub(super) async fn start(tls: &TlsSettings, account: Option<u32>) -> Result<Self, SignerError> {
        let (control, passed) = socket_pair().map_err(ProcessError::from)?;
        let mut child = spawn(SIGNER, account, passed, |command| {
            command.args(tls_signer::options(tls)).stdout(Stdio::piped());
        })
        .map_err(ProcessError::from)?;
        let report = match child.stdout.take() {
            Some(stdout) => timeout(START_TIMEOUT, read_report(stdout)).await.ok().flatten(),
            None => None,
        };
        let certificate = match report {
            Some(SignerReport::Sealed(certificate)) => certificate,
            Some(SignerReport::Unusable(reason)) => return Err(SignerError::Unusable(reason)),
            None => return Err(fault(child).await.into()),
        };
        let pid = child.id().unwrap_or_default();
        let parent = ServiceParent::ThisProcess { user: account };
        verify_service(SIGNER.command(), pid, 1, parent).map_err(ProcessError::from)?;
        let ended = CancellationToken::new();
        let has_ended = ended.clone().drop_guard();
        tokio::spawn(async move {
            let _ended = has_ended;
            let _ = child.wait().await;
        });
        Ok(Self { control, certificate, pid, ended })
    }

    /// Returns the process, for reports.
    pub(super) fn describe(&self) -> HttpProcess {
        HttpProcess { pid: self.pid, role: role::SIGNER }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn certificate(&self) -> &ServedCertificate {
        &self.certificate
    }

    /// Connects a front to the signer. Returns the front's end.
    pub(super) fn connect(&self) -> io::Result<OwnedFd> {
        let (front, signer) = socket_pair()?;
        // The front waits for each signature, and with it all of its clients.
        setsockopt(&front, sockopt::ReceiveTimeout, &TimeVal::seconds(SIGNATURE_TIMEOUT_S))?;
        send_socket(self.control.as_fd(), signer.as_fd())?;
        Ok(front)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Returns when the process has ended.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + use<> {
        self.ended.clone().cancelled_owned()
    }
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

async fn read_report(stdout: ChildStdout) -> Option<SignerReport> {
    let mut json = Vec::new();
    stdout.take(REPORT_BYTES_MAX).read_to_end(&mut json).await.ok()?;
    serde_json::from_slice(&json).ok()
}

async fn fault(mut child: Child) -> ProcessError {
    match timeout(START_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) => ProcessError::Ended { process: SIGNER, status },
        _ => ProcessError::Silent { process: SIGNER },
    }
}
