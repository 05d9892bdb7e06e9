//! Accepts connections at Unix domain sockets, except those of sandboxed upstream servers.

use std::io::{ErrorKind, Result};
use std::os::fd::AsFd;

use tokio::net::{UnixListener, UnixStream};

use crate::confined_mark::refuses_peer;

/// Accepts the next connection.
///
/// # Errors
/// Those of accept(2). `ConnectionAborted`: the other end is a sandboxed upstream server, or has ended.
pub async fn accept(listener: &UnixListener) -> Result<UnixStream> {
    let (stream, _) = listener.accept().await?;
    // The check opens a file. Without a free descriptor it would take every process for a sandboxed one.
    drop(stream.as_fd().try_clone_to_owned()?);
    let pid = stream.peer_cred()?.pid();
    if refuses_peer(pid.and_then(|id| u32::try_from(id).ok())) {
        tracing::warn!("rejected a connection of a sandboxed upstream server");
        return Err(ErrorKind::ConnectionAborted.into());
    }
    Ok(stream)
}
