//! The system-call filters: data in `worker/seccomp/`, compiled once by the zygote, installed last by each worker.
#![allow(unsafe_code)] // seccomp(2) has no wrapper that an installed filter would still permit.

use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};

use super::SandboxError;

#[cfg(target_arch = "x86_64")]
const SOURCE: &str = include_str!("../../seccomp/x86_64.json");
#[cfg(not(target_arch = "x86_64"))]
compile_error!("no seccomp filter has been written for this architecture yet");

/// In the order of installation: the last one permits no further filter. `allowed` lets clone3 through to the verdict of
/// `no_clone3`, since of two filters that refuse with an error number the newest would win, and its EPERM would keep
/// libc from falling back to clone.
const ORDER: [&str; 3] = ["attacks", "no_clone3", "allowed"];

/// Stands for the worker's own pid in the filter source.
const OWN_PID: u32 = 0x7fff_ffff;

/// The compiled filters.
#[derive(Debug)]
pub struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Compiles the filters of this architecture.
    ///
    /// # Errors
    /// [`SandboxError::Filters`]: only a broken build has it.
    pub fn compile() -> Result<Self, SandboxError> {
        let failed = |error: String| SandboxError::Filters(error);
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(error.to_string()))?;
        let mut programs =
            compile_from_json(SOURCE.as_bytes(), arch).map_err(|error| failed(error.to_string()))?;
        let mut take =
            |name: &str| programs.remove(name).ok_or_else(|| failed(format!("no filter {name:?}")));
        Ok(Self(ORDER.into_iter().map(&mut take).collect::<Result<_, _>>()?))
    }

    /// How many filters each worker has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Installs all of them on this process, for good.
    pub(super) fn install(&self) -> Result<(), SandboxError> {
        let pid = std::process::id();
        // The filters must be ready before the first is in force: allocating is still permitted after it, but nothing
        // here should depend on that.
        let programs: Vec<BpfProgram> = self.0.iter().map(|program| for_pid(program, pid)).collect();
        programs.iter().try_for_each(|program| install(program))
    }
}

/// The program with the worker's own pid in place of the stand-in.
fn for_pid(program: &[sock_filter], pid: u32) -> BpfProgram {
    let patch = |instruction: &sock_filter| {
        let mut instruction = instruction.clone();
        if instruction.k == OWN_PID {
            instruction.k = pid;
        }
        instruction
    };
    program.iter().map(patch).collect()
}

fn install(program: &[sock_filter]) -> Result<(), SandboxError> {
    let header =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr() as *mut libc::sock_filter };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the header points at a live program of its stated length; seccompiler's instruction has the kernel's
    // layout.
    if unsafe { libc::syscall(libc::SYS_seccomp, mode, libc::SECCOMP_FILTER_FLAG_TSYNC, &raw const header) }
        != 0
    {
        return Err(SandboxError::Step { step: "seccomp", source: std::io::Error::last_os_error() });
    }
    Ok(())
}
