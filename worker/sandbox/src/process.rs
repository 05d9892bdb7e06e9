//! Security attributes of the process, set with prctl.
#![allow(unsafe_code, reason = "prctl with numbers that nix does not name")]

use nix::sys::prctl;

use super::SandboxError;

const PR_SET_MDWE: i32 = 65;
const PR_GET_MDWE: i32 = 66;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

/// Makes the kernel kill this process when its parent ends. Returns false if that fails, or if `parent` is no longer
/// the parent. Must be repeated after a change of user, which clears the setting.
#[must_use]
pub fn die_with_parent(parent: nix::unistd::Pid) -> bool {
    prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).is_ok() && nix::unistd::getppid() == parent
}

/// Disables core dumps, and ptrace by other processes of the same user.
pub(super) fn not_dumpable() -> Result<(), SandboxError> {
    prctl::set_dumpable(false).map_err(SandboxError::errno("PR_SET_DUMPABLE"))
}

/// Prevents writable memory from becoming executable, if the kernel supports that (Linux 6.3).
pub(super) fn deny_write_execute() -> Result<(), SandboxError> {
    // SAFETY: sets a flag of this process; no pointers.
    let set = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) };
    let error = std::io::Error::last_os_error();
    // Older kernels return EINVAL. The zygote's probe reports that, and the seccomp filter enforces the same
    // restriction.
    if set < 0 && error.raw_os_error() != Some(libc::EINVAL) {
        return Err(SandboxError::Step { step: "PR_SET_MDWE", source: error });
    }
    Ok(())
}

/// Returns whether the kernel reports that writable memory cannot become executable. Returns `None` if the kernel does
/// not support this query (`PR_GET_MDWE`).
pub(super) fn write_execute_is_denied() -> Option<bool> {
    // SAFETY: a query without pointers.
    let flags = unsafe { libc::prctl(PR_GET_MDWE, 0, 0, 0, 0) };
    (flags >= 0).then_some(flags & PR_MDWE_REFUSE_EXEC_GAIN as i32 != 0)
}
