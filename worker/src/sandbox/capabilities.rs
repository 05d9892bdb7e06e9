//! No Linux capability, in any set, ever again.
#![allow(unsafe_code)] // capset has no wrapper in nix.

use super::SandboxError;

const VERSION_3: u32 = 0x2008_0522;
/// Numbers up to here are tried; the kernel says EINVAL from the first that it does not know.
const LAST_POSSIBLE: libc::c_ulong = 63;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Empties the bounding set, as far as this process may: an unprivileged one may not, and `no_new_privs` keeps the set out
/// of its reach. Called before a change of user takes away the right to it.
pub(super) fn drop_bounding() {
    for capability in 0..=LAST_POSSIBLE {
        // SAFETY: changes a set of this process; no pointers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            break;
        }
    }
}

/// Empties the ambient, effective, permitted and inheritable sets.
pub(super) fn drop_all() -> Result<(), SandboxError> {
    // SAFETY: changes a set of this process; no pointers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: both pointers are to live values of the layout that version 3 defines.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } < 0 {
        return Err(SandboxError::Step { step: "capset", source: std::io::Error::last_os_error() });
    }
    Ok(())
}
