//! The socket of a service that starts a server for each connection, such as a socket unit of systemd with `Accept=yes`.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use tokio::net::UnixStream;
use tokio::process::{ChildStdin, ChildStdout};

/// Why there is no connection to the service, for the model: without a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServiceSocketError {
    #[error("the service behind its socket cannot be reached: {}", .0.kind())]
    Unreachable(#[from] io::Error),
    #[error(
        "its socket is not used, because another account than root and Lockhouse's could replace it: {0}"
    )]
    Untrusted(#[from] UntrustedPath),
}

/// Connects to the service. Returns what are the standard output and input of the server that it starts.
///
/// # Errors
/// It does not run, or accounts that are not trusted could have taken its place.
pub(super) async fn connect(path: &Path) -> Result<(ChildStdout, ChildStdin), ServiceSocketError> {
    check_path(path.parent().unwrap_or(path), &TrustedOwners::root_and_own(), Strictness::Strict)?;
    Ok(standard_streams(UnixStream::connect(path).await?)?)
}

/// Returns a socket as the standard output and input of a process.
pub(super) fn standard_streams(stream: UnixStream) -> io::Result<(ChildStdout, ChildStdin)> {
    let stream = stream.into_std()?;
    let (output, input) = (OwnedFd::from(stream.try_clone()?), OwnedFd::from(stream));
    let (output, input) = (std::process::ChildStdout::from(output), std::process::ChildStdin::from(input));
    Ok((ChildStdout::from_std(output)?, ChildStdin::from_std(input)?))
}
