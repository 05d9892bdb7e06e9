//! Installs the seccomp filter, which is compiled from `worker/seccomp/` at build time. It is the last layer of each
//! worker, and consists of two BPF programs: the zygote installs the larger one, so that the kernel compiles it once.
#![allow(unsafe_code, reason = "seccomp(2) has no wrapper in nix")]

use super::SandboxError;

macro_rules! programs {
    ($architecture:literal) => {
        [
            include_bytes!(concat!(env!("OUT_DIR"), "/", $architecture, ".zygote.bpf")).as_slice(),
            include_bytes!(concat!(env!("OUT_DIR"), "/", $architecture, ".worker.bpf")).as_slice(),
        ]
    };
}

/// The two BPF programs of the seccomp filter, compiled for this architecture: the one that the zygote installs and its
/// workers inherit, and the one that each worker adds.
#[cfg(target_arch = "x86_64")]
const PROGRAMS: [&[u8]; 2] = programs!("x86_64");
#[cfg(target_arch = "aarch64")]
const PROGRAMS: [&[u8]; 2] = programs!("aarch64");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("no seccomp filter has been written for this architecture yet");

/// Placeholder for the worker's own process id in the compiled filter.
const OWN_PID: u32 = 0x7fff_ffff;

/// The decoded BPF programs of the seccomp filter. The program that each worker installs has placeholders for the
/// worker's process id.
#[derive(Debug)]
pub(super) struct Filter {
    zygote_program: Vec<libc::sock_filter>,
    worker_program: Vec<libc::sock_filter>,
    /// The indexes of the instructions in `worker_program` whose operand is the worker's own process id.
    own_pid: Vec<usize>,
    /// Whether the zygote has installed `zygote_program`, so that its workers inherit it.
    is_inherited: bool,
}

impl Filter {
    pub(super) fn decode() -> Self {
        let [zygote_program, worker_program] = PROGRAMS.map(decode);
        let own_pid = worker_program.iter().enumerate().filter(|(_, step)| step.k == OWN_PID);
        let own_pid = own_pid.map(|(position, _)| position).collect();
        Self { zygote_program, worker_program, own_pid, is_inherited: false }
    }

    /// Installs the zygote's part of the seccomp filter on this process irrevocably. Workers that are forked later
    /// inherit it.
    pub(super) fn install_in_zygote(&mut self) -> Result<(), SandboxError> {
        install(&self.zygote_program)?;
        self.is_inherited = true;
        Ok(())
    }

    /// Installs the seccomp filter on this worker irrevocably: the worker's part, and the zygote's part if this worker
    /// has not inherited it.
    pub(super) fn install(&self) -> Result<(), SandboxError> {
        if !self.is_inherited {
            install(&self.zygote_program)?;
        }
        let mut program = self.worker_program.clone();
        for position in &self.own_pid {
            program[*position].k = std::process::id();
        }
        install(&program)
    }
}

/// Decodes a BPF program as the build scripts compile it: instructions of eight bytes, little-endian.
#[must_use]
pub fn decode(program: &[u8]) -> Vec<libc::sock_filter> {
    let (instructions, _) = program.as_chunks::<8>();
    let instruction = |&[c0, c1, jt, jf, k0, k1, k2, k3]: &[u8; 8]| libc::sock_filter {
        code: u16::from_le_bytes([c0, c1]),
        jt,
        jf,
        k: u32::from_le_bytes([k0, k1, k2, k3]),
    };
    instructions.iter().map(instruction).collect()
}

/// Permanently installs a BPF program as a seccomp filter of all threads of this process. Requires `no_new_privs`.
///
/// # Errors
/// The kernel's error.
pub fn install(program: &[libc::sock_filter]) -> Result<(), SandboxError> {
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
