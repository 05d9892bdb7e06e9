//! What the worker may still hold: nothing for standard streams, and its channel.
#![allow(unsafe_code)] // Descriptor numbers are moved by hand, once.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::SandboxError;

const CHANNEL: i32 = 3;

/// Opens `/dev/null` while there still is one.
pub(super) fn open_null() -> Result<OwnedFd, SandboxError> {
    open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(SandboxError::errno("open /dev/null"))
}

/// Makes 0, 1 and 2 `/dev/null` and 3 the channel, and closes every other descriptor.
pub(super) fn keep_only(null: &OwnedFd, channel: OwnedFd) -> Result<OwnedFd, SandboxError> {
    let failed = |step| SandboxError::Step { step, source: std::io::Error::last_os_error() };
    // Both numbers are above 2, for the zygote keeps 0, 1 and 2 taken: nothing is overwritten before it is used.
    let channel = channel.into_raw_fd();
    for (source, target) in
        [(null.as_raw_fd(), 0), (null.as_raw_fd(), 1), (null.as_raw_fd(), 2), (channel, CHANNEL)]
    {
        // SAFETY: dup2 has no memory effects. Descriptor 3 may be the zygote's own socket, which the worker must lose.
        if unsafe { libc::dup2(source, target) } < 0 {
            return Err(failed("dup2"));
        }
    }
    // SAFETY: closes descriptors by number; nothing in the worker uses one above 3 from here on.
    if unsafe { libc::syscall(libc::SYS_close_range, CHANNEL + 1, u32::MAX, 0) } < 0 {
        return Err(failed("close_range (Linux 5.9)"));
    }
    // SAFETY: descriptor 3 was made above and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(CHANNEL) })
}
