//! Applies Landlock with all rights handled and no rule: no files, no TCP ports, no signals or abstract sockets
//! outside the worker.
#![allow(unsafe_code, reason = "The crate keeps the query for the version to itself")]

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetStatus, Scope,
};

use super::SandboxError;

/// Newest Landlock ABI that is used. Older kernels apply the rights that they support, from ABI 1 on.
const NEWEST: ABI = ABI::V9;
/// First Landlock ABI that restricts TCP (Linux 6.7).
pub(super) const TCP: i64 = 4;
/// First Landlock ABI that restricts signals and abstract sockets (Linux 6.12).
pub(super) const SCOPES: i64 = 6;

/// Returns the Landlock ABI of the kernel; 0 if Landlock is not available. The last operating system error then says why.
#[must_use]
pub fn version() -> i64 {
    const CREATE_RULESET_VERSION: u32 = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: a query for the version; it reads no memory.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, CREATE_RULESET_VERSION) };
    version.max(0)
}

/// Restricts this process irrevocably with Landlock: the process can no longer open files, use TCP, or reach processes
/// outside its Landlock domain by signals or abstract sockets. An older kernel applies only the restrictions that it
/// supports.
pub(super) fn restrict() -> Result<(), SandboxError> {
    if version() == 0 {
        return Err(SandboxError::Landlock(std::io::Error::last_os_error().to_string()));
    }
    let status = enforce().map_err(|error| SandboxError::Landlock(error.to_string()))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(SandboxError::Landlock("the kernel did not enforce it".into())),
        _ => Ok(()),
    }
}

fn enforce() -> Result<RestrictionStatus, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()
}
