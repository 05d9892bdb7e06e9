//! Attributes of the process itself.
#![allow(unsafe_code)] // prctl with numbers that nix does not name.

use super::SandboxError;

const PR_SET_MDWE: i32 = 65;
const PR_GET_MDWE: i32 = 66;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

/// Ends this process when its parent ends, and says whether the parent is still `parent`. Changing the user clears
/// it, so it is asked for after that.
#[must_use]
pub fn die_with_parent(parent: nix::unistd::Pid) -> bool {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).is_ok()
        && nix::unistd::getppid() == parent
}

/// What the kernel lacks, as short phrases.
pub(super) fn probe() -> Option<String> {
    // SAFETY: a query without pointers.
    let known = unsafe { libc::prctl(PR_GET_MDWE, 0, 0, 0, 0) } >= 0;
    (!known).then(|| "no memory-deny-write-execute (Linux 6.3)".to_owned())
}

/// No core, no ptrace, no privileges ever, no new executable memory.
pub(super) fn harden() -> Result<(), SandboxError> {
    use nix::sys::prctl;
    prctl::set_dumpable(false).map_err(SandboxError::errno("PR_SET_DUMPABLE"))?;
    prctl::set_no_new_privs().map_err(SandboxError::errno("PR_SET_NO_NEW_PRIVS"))?;
    // SAFETY: sets a flag of this process; no pointers.
    let set = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) };
    let error = std::io::Error::last_os_error();
    // EINVAL is an older kernel: the zygote has reported that, and seccomp holds the same line.
    if set < 0 && error.raw_os_error() != Some(libc::EINVAL) {
        return Err(SandboxError::Step { step: "PR_SET_MDWE", source: error });
    }
    Ok(())
}
