//! Resource limits of a worker.

use lockhouse_protocol::SandboxProfile;
use rlimit::Resource;

use super::SandboxError;

const STACK_BYTES: u64 = 8 * 1024 * 1024;
const DESCRIPTORS: u64 = 64;
/// Maximum number of threads of a zygote and all its workers together, because the kernel counts threads per user
/// namespace (`RLIMIT_NPROC`).
const TASKS: u64 = 256;

/// Returns the size of the address space of this process, in bytes.
pub(super) fn mapped_bytes() -> Result<u64, SandboxError> {
    let step = "read /proc/self/statm";
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(SandboxError::step(step))?;
    let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    let missing = || std::io::Error::other("no number in it");
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .map_err(SandboxError::errno(step))?
        .and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = pages.zip(page_bytes).map(|(pages, bytes)| pages * bytes);
    bytes.ok_or_else(|| SandboxError::Step { step, source: missing() })
}

/// Sets all resource limits of the worker. `RLIMIT_DATA` limits its private memory, `RLIMIT_AS` its whole address
/// space. Both permit the profile's memory in addition to `mapped_bytes`. The number of threads is limited only if
/// `in_user_namespace` is set: elsewhere, the kernel would also count all other processes of the user.
pub(super) fn set(
    profile: &SandboxProfile,
    mapped_bytes: u64,
    in_user_namespace: bool,
) -> Result<(), SandboxError> {
    let memory = mapped_bytes.saturating_add(profile.memory_bytes);
    let cpu = profile.cpu_seconds;
    let mut limits = vec![
        (Resource::CORE, 0, 0),
        (Resource::FSIZE, 0, 0),
        (Resource::NOFILE, DESCRIPTORS, DESCRIPTORS),
        (Resource::MEMLOCK, 0, 0),
        (Resource::MSGQUEUE, 0, 0),
        (Resource::STACK, STACK_BYTES, STACK_BYTES),
        (Resource::CPU, cpu, cpu.saturating_add(1)),
        (Resource::DATA, memory, memory),
        (Resource::AS, memory, memory),
    ];
    // Without its own user namespace, the count would include all other processes of the user.
    if in_user_namespace {
        limits.push((Resource::NPROC, TASKS, TASKS));
    }
    for (resource, soft, hard) in limits {
        // A lower hard limit of the host is kept.
        let (_, host) = resource.get().map_err(SandboxError::step("getrlimit"))?;
        let hard = hard.min(host);
        resource.set(soft.min(hard), hard).map_err(SandboxError::step("setrlimit"))?;
    }
    Ok(())
}
