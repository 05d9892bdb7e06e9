//! Closes inherited descriptors. A worker keeps only its channel (the socket to the supervisor), and standard
//! streams that are not connected to anything.
#![allow(unsafe_code, reason = "Descriptor numbers are moved by hand, once")]

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use super::{Layer, Layers, SandboxError};

/// Descriptor number of the worker's channel (the socket to the supervisor).
const CHANNEL: i32 = 3;

/// Sets up descriptors 0 (at end of file), 1 and 2 (without a reader) and 3 (the channel, which is the socket
/// to the supervisor), and closes all others.
///
/// The streams are pipes of this worker alone. A shared `/dev/null` would have flags that one worker can set
/// and others can read.
///
/// # Errors
/// The step that failed. Also returns the channel if it is descriptor 3 already, so that the worker can
/// report the error.
pub(super) fn keep_only(
    channel: OwnedFd,
    layers: Layers,
) -> Result<OwnedFd, (SandboxError, Option<OwnedFd>)> {
    let channel = assign_descriptors(channel).map_err(|error| (error, None))?;
    if layers.has(Layer::Descriptors) {
        // SAFETY: closes descriptors by number; nothing in the worker uses one above 3 from here on.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, CHANNEL + 1, u32::MAX, 0) };
        if closed < 0 {
            let error = SandboxError::Step { step: "close_range", source: Error::last_os_error() };
            return Err((error, Some(channel)));
        }
    }
    Ok(channel)
}

fn assign_descriptors(channel: OwnedFd) -> Result<OwnedFd, SandboxError> {
    let failed = |step: &'static str| move |source: Error| SandboxError::Step { step, source };
    // The zygote keeps 0, 1 and 2 open, so all descriptors here are above them, and none is overwritten before it is
    // used.
    let (input, _) = std::io::pipe().map_err(failed("pipe"))?;
    let (_, output) = std::io::pipe().map_err(failed("pipe"))?;
    // The other ends are closed by now: reading returns end of file, writing fails with EPIPE.
    let channel = channel.into_raw_fd();
    let moves =
        [(input.as_raw_fd(), 0), (output.as_raw_fd(), 1), (output.as_raw_fd(), 2), (channel, CHANNEL)];
    for (source, target) in moves {
        // SAFETY: dup2 has no memory effects. Descriptor 3 may be the zygote's own socket, which the worker must lose.
        if unsafe { libc::dup2(source, target) } < 0 {
            return Err(failed("dup2")(Error::last_os_error()));
        }
    }
    // The originals are above 3 or at their final number: no destructor may close those.
    let _ = (input.into_raw_fd(), output.into_raw_fd());
    // SAFETY: descriptor 3 was made above and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(CHANNEL) })
}

/// Returns the open descriptors from 4 to 4095. A sandboxed worker should have none.
pub(super) fn unexpected() -> Vec<i32> {
    // SAFETY: asks about numbers, without memory effects.
    (CHANNEL + 1..4096).filter(|number| unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0).collect()
}
