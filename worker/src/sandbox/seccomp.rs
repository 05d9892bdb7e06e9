//! Installs the seccomp filter, which is compiled from `worker/seccomp/` at build time. It is the last layer of each
//! worker.
#![allow(unsafe_code, reason = "seccomp(2) has no wrapper in nix")]

use super::SandboxError;

#[cfg(target_arch = "x86_64")]
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/x86_64.bpf"));
#[cfg(target_arch = "aarch64")]
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/aarch64.bpf"));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("no seccomp filter has been written for this architecture yet");

/// Placeholder for the worker's own process id in the compiled filter.
const OWN_PID: u32 = 0x7fff_ffff;

/// Installs the filter on this process irrevocably.
pub(super) fn install() -> Result<(), SandboxError> {
    let program = for_pid(std::process::id());
    let header = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the header points at a live program of its stated length.
    if unsafe { libc::syscall(libc::SYS_seccomp, mode, libc::SECCOMP_FILTER_FLAG_TSYNC, &raw const header) }
        != 0
    {
        return Err(SandboxError::Step { step: "seccomp", source: std::io::Error::last_os_error() });
    }
    Ok(())
}

/// Replaces the placeholder by the worker's process id.
fn for_pid(pid: u32) -> Vec<libc::sock_filter> {
    let (instructions, _) = PROGRAM.as_chunks::<8>();
    let instruction = |&[c0, c1, jt, jf, k0, k1, k2, k3]: &[u8; 8]| {
        let k = u32::from_le_bytes([k0, k1, k2, k3]);
        let k = if k == OWN_PID { pid } else { k };
        libc::sock_filter { code: u16::from_le_bytes([c0, c1]), jt, jf, k }
    };
    instructions.iter().map(instruction).collect()
}
