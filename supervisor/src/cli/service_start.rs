//! What the sealed processes of the HTTP service have in common at their start.
#![allow(unsafe_code, reason = "standard input is a socket, and signals are ignored")]

use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use lockhouse_sandbox::{Layers, SandboxError, ServiceKind, ServiceSandbox, die_with_parent};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::getppid;

/// The environment variable with the filter of the log, which the processes of the HTTP service have too.
pub(super) const LOG_VARIABLE: &str = "LOCKHOUSE_LOG";

/// Signals for the engine's process, which ends this one. A terminal sends them to all processes in front of it.
const IGNORED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGXFSZ];

/// Names this process, ties its life to that of the engine's process, and enters the first part of its sandbox.
pub(super) fn prepare(
    kind: ServiceKind,
    name: &str,
    account: Option<u32>,
) -> Result<ServiceSandbox, SandboxError> {
    let parent = getppid();
    for ignored in IGNORED {
        // SAFETY: ignoring a signal installs no code. It fails only for signals that cannot be ignored.
        let _ = unsafe { signal(ignored, SigHandler::SigIgn) };
    }
    if let Ok(name) = CString::new(name) {
        // The name is for people.
        let _ = nix::sys::prctl::set_name(&name);
    }
    let sandbox = ServiceSandbox::prepare(kind, Layers::ALL, account, &[])?;
    // After the change of the user, which clears the setting. If the parent has ended already, standard input is at its end.
    let _ = die_with_parent(parent);
    Ok(sandbox)
}

/// Returns a duplicate of standard input, which the engine's process has made a socket.
pub(super) fn take_standard_input() -> io::Result<OwnedFd> {
    // SAFETY: descriptor 0 is open as long as the process, and borrowed for this call only.
    unsafe { BorrowedFd::borrow_raw(0) }.try_clone_to_owned()
}
