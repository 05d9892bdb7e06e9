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

/// The filter with placeholders. The zygote decodes it, so that each worker changes only the instructions with its
/// process id.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<libc::sock_filter>,
    /// The positions of the instructions whose operand is the worker's own process id.
    own_pid: Vec<usize>,
}

impl Filter {
    pub(super) fn decode() -> Self {
        let (instructions, _) = PROGRAM.as_chunks::<8>();
        let instruction = |&[c0, c1, jt, jf, k0, k1, k2, k3]: &[u8; 8]| libc::sock_filter {
            code: u16::from_le_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_le_bytes([k0, k1, k2, k3]),
        };
        let program: Vec<_> = instructions.iter().map(instruction).collect();
        let own_pid = program.iter().enumerate().filter(|(_, step)| step.k == OWN_PID);
        Self { own_pid: own_pid.map(|(position, _)| position).collect(), program }
    }

    /// Installs the filter on this process irrevocably.
    pub(super) fn install(&self) -> Result<(), SandboxError> {
        let mut program = self.program.clone();
        for position in &self.own_pid {
            program[*position].k = std::process::id();
        }
        install(&program)
    }
}

fn install(program: &[libc::sock_filter]) -> Result<(), SandboxError> {
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
