//! Attributes of the process itself.
#![allow(unsafe_code, reason = "prctl with numbers that nix does not name")]

use nix::sys::prctl;

use super::SandboxError;

const PR_SET_MDWE: i32 = 65;
const PR_GET_MDWE: i32 = 66;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

/// Ends this process when its parent ends, and says whether the parent is still `parent`. Changing the user clears
/// it, so it is asked for after that.
#[must_use]
pub fn die_with_parent(parent: nix::unistd::Pid) -> bool {
    prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).is_ok() && nix::unistd::getppid() == parent
}

/// No privileges ever again, whatever is executed. Landlock and seccomp ask for it.
pub(super) fn no_new_privileges() -> Result<(), SandboxError> {
    prctl::set_no_new_privs().map_err(SandboxError::errno("PR_SET_NO_NEW_PRIVS"))
}

/// No core dump, and no ptrace by another process of the same user.
pub(super) fn not_dumpable() -> Result<(), SandboxError> {
    prctl::set_dumpable(false).map_err(SandboxError::errno("PR_SET_DUMPABLE"))
}

/// Memory that was writable never becomes executable, where the kernel knows how (Linux 6.3).
pub(super) fn deny_write_execute() -> Result<(), SandboxError> {
    // SAFETY: sets a flag of this process; no pointers.
    let set = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) };
    let error = std::io::Error::last_os_error();
    // EINVAL is an older kernel: the zygote's probe reports that, and seccomp holds the same line.
    if set < 0 && error.raw_os_error() != Some(libc::EINVAL) {
        return Err(SandboxError::Step { step: "PR_SET_MDWE", source: error });
    }
    Ok(())
}

/// Whether the kernel says that it denies that; `None` from one that does not know.
pub(super) fn write_execute_is_denied() -> Option<bool> {
    // SAFETY: a query without pointers.
    let flags = unsafe { libc::prctl(PR_GET_MDWE, 0, 0, 0, 0) };
    (flags >= 0).then_some(flags & PR_MDWE_REFUSE_EXEC_GAIN as i32 != 0)
}
