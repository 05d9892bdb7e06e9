//! Resource limits of a worker.

use lockhouse_protocol::SandboxProfile;
use rlimit::Resource;

use super::SandboxError;

/// The stack of a worker, in bytes.
/// Bound: workers and programs.
const STACK_BYTES: u64 = 8 * 1024 * 1024;
/// Open descriptors of a worker.
/// Bound: workers and programs.
const DESCRIPTORS: u64 = 64;
/// Maximum number of threads of a zygote and all its workers together, because the kernel counts threads per user
/// namespace (`RLIMIT_NPROC`).
/// Bound: workers and programs.
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

/// The resources of which neither a worker nor its zygote may use anything: core dumps, files, locked memory and message
/// queues.
pub(super) const NONE: [Resource; 4] =
    [Resource::CORE, Resource::FSIZE, Resource::MEMLOCK, Resource::MSGQUEUE];

/// Sets the limits of the zygote that are the same for all its workers, to 0. A forked worker inherits them, and no
/// process without Linux capabilities can raise them.
pub(super) fn set_in_zygote() -> Result<(), SandboxError> {
    NONE.iter().try_for_each(|resource| set_limit(*resource, 0, 0))
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
    // The worker of the self-test is forked before its zygote has these limits, and all workers run the same code.
    NONE.iter().try_for_each(|resource| set_limit(*resource, 0, 0))?;
    set_limit(Resource::NOFILE, DESCRIPTORS, DESCRIPTORS)?;
    set_limit(Resource::STACK, STACK_BYTES, STACK_BYTES)?;
    set_limit(Resource::CPU, cpu, cpu.saturating_add(1))?;
    set_limit(Resource::DATA, memory, memory)?;
    set_limit(Resource::AS, memory, memory)?;
    // Without its own user namespace, the count would include all other processes of the user.
    if in_user_namespace {
        set_limit(Resource::NPROC, TASKS, TASKS)?;
    }
    Ok(())
}

pub(super) fn set_limit(resource: Resource, soft: u64, hard: u64) -> Result<(), SandboxError> {
    // A limit of 0 needs no comparison with the host's.
    let host = if hard == 0 { 0 } else { resource.get().map_err(SandboxError::step("getrlimit"))?.1 };
    // A lower hard limit of the host is kept.
    let hard = hard.min(host);
    resource.set(soft.min(hard), hard).map_err(SandboxError::step("setrlimit"))
}
