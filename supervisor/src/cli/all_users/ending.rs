//! Waits for the end of a process, and ends it with signals if it does not end by itself.

#![allow(unsafe_code, reason = "pidfd_open and pidfd_send_signal have no wrapper in nix")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// How long a process that was asked to stop may take, before it gets SIGTERM.
pub(super) const ANSWERED_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a process may take after SIGTERM, before it gets SIGKILL.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a process after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Ending {
    /// It ended on SIGTERM.
    Terminated,
    Killed,
    /// It has not ended.
    Remains,
}

/// A process that a signal reaches although another one may get its number.
pub(super) struct ProcessHandle(AsyncFd<OwnedFd>);

impl ProcessHandle {
    /// Opens the process with this number.
    ///
    /// # Errors
    /// There is none, or the kernel gives no handle.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
        // SAFETY: the call takes two numbers.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let descriptor = i32::try_from(opened).ok().filter(|descriptor| *descriptor >= 0);
        let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made the descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: the descriptor stays open as long as the value that owns it.
        Ok(Self(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?))
    }

    /// Waits until the process has ended, at most for this time. Returns whether it has.
    pub(super) async fn wait(&self, time: Duration) -> bool {
        timeout(time, self.0.readable()).await.is_ok_and(|readable| readable.is_ok())
    }

    /// Ends the process with SIGTERM, and then SIGKILL.
    pub(super) async fn end(&self) -> Ending {
        self.signal(Signal::SIGTERM);
        if self.wait(TERMINATION_TIMEOUT).await {
            return Ending::Terminated;
        }
        self.signal(Signal::SIGKILL);
        if self.wait(KILL_TIMEOUT).await { Ending::Killed } else { Ending::Remains }
    }

    fn signal(&self, signal: Signal) {
        let no_details = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is owned and open, and a null siginfo selects the default.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal as i32, no_details, 0)
        };
    }
}
