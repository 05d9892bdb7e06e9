//! Switches to an unprivileged user, drops all Linux capabilities permanently, and sets `no_new_privs`.
#![allow(unsafe_code, reason = "capget and capset have no wrapper in nix")]

use std::io::Error;

use nix::sys::prctl;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::SandboxError;

const VERSION_3: u32 = 0x2008_0522;
/// Highest capability number that is tried; a kernel that does not know a number returns EINVAL.
const LAST_POSSIBLE: libc::c_ulong = 63;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Switches to the user and group id `unprivileged_id`, if given, and empties all capability sets.
pub(super) fn drop_all(unprivileged_id: Option<u32>) -> Result<(), SandboxError> {
    // Must come first, since it requires a capability.
    drop_bounding();
    if let Some(id) = unprivileged_id {
        become_user(id).map_err(|errno| SandboxError::Unprivileged { id, source: errno.into() })?;
    }
    // SAFETY: changes a set of this process; no pointers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [Sets::default(); 2];
    // SAFETY: both pointers are to live values of the layout that version 3 defines.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } < 0 {
        return Err(SandboxError::Step {
            step: "give up every capability (capset)",
            source: Error::last_os_error(),
        });
    }
    Ok(())
}

/// Sets `no_new_privs`, so that execve can no longer give the process privileges. Landlock and seccomp
/// require this of unprivileged processes.
pub(super) fn no_new_privileges() -> Result<(), SandboxError> {
    prctl::set_no_new_privs().map_err(SandboxError::errno("PR_SET_NO_NEW_PRIVS"))
}

/// Returns whether the effective, permitted and inheritable capability sets of this process are empty.
pub(super) fn has_none() -> Result<bool, Error> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets { effective: 1, ..Sets::default() }; 2];
    // SAFETY: both pointers are to live values of the layout that version 3 defines.
    match unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) } {
        0 => Ok(sets == [Sets::default(); 2]),
        _ => Err(Error::last_os_error()),
    }
}

/// Empties the capability bounding set. The kernel does not permit this to an unprivileged process; then
/// `no_new_privs` makes the set irrelevant.
fn drop_bounding() {
    for capability in 0..=LAST_POSSIBLE {
        // SAFETY: changes a set of this process; no pointers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            break;
        }
    }
}

fn become_user(id: u32) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}
