//! The protections that a worker's sandbox consists of, and the result of testing each one. A zygote tests them in a
//! worker that gets no code: the worker enters the sandbox, and attempts what the sandbox must prevent.

use serde::{Deserialize, Serialize};

/// One property of the sandbox of workers, which can be tested. The supervisor decides which protections are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protection {
    /// The seccomp filter refuses system calls that are not on its allowlist.
    SystemCalls,
    /// The seccomp filter kills the worker upon system calls that only an attack makes.
    KillOnAttack,
    /// The flag `no_new_privs` of the worker process is set.
    NoNewPrivileges,
    /// The worker does not run as root.
    OrdinaryUser,
    /// The worker has no Linux capability.
    NoCapabilities,
    /// The worker process is not dumpable: it leaves no core file, and other processes of the same user cannot trace it
    /// with ptrace.
    NotDumpable,
    /// Landlock denies access to files.
    LandlockFiles,
    /// Landlock denies TCP connections.
    LandlockTcp,
    /// Landlock denies signals to processes outside the worker's Landlock domain, and connections to abstract Unix
    /// sockets of such processes.
    LandlockScopes,
    /// The worker is in namespaces that its zygote created, with an empty, read-only root file system.
    EmptyRoot,
    /// The worker is in a network namespace that its zygote created, and whose loopback interface is down.
    NoNetwork,
    /// Memory of the worker that was ever writable cannot become executable.
    WriteXorExecute,
    /// Resource limits of the kernel restrict the worker's memory and number of descriptors, and prevent it from
    /// writing files and core files.
    ResourceLimits,
    /// The worker has no open descriptors except its socket to the supervisor and three unconnected pipes (descriptors
    /// 0, 1 and 2).
    Descriptors,
    /// The supervisor has a pidfd of the worker process, so that it can kill exactly this process.
    Pidfd,
    /// A control group for each worker limits the worker's memory and number of tasks.
    ControlGroup,
}

impl Protection {
    /// The protections that a zygote must test and report: all except [`Self::ControlGroup`], which the
    /// supervisor checks itself.
    pub const CHECKED_BY_ZYGOTE: [Self; 15] = [
        Self::SystemCalls,
        Self::KillOnAttack,
        Self::NoNewPrivileges,
        Self::OrdinaryUser,
        Self::NoCapabilities,
        Self::NotDumpable,
        Self::LandlockFiles,
        Self::LandlockTcp,
        Self::LandlockScopes,
        Self::EmptyRoot,
        Self::NoNetwork,
        Self::WriteXorExecute,
        Self::ResourceLimits,
        Self::Descriptors,
        Self::Pidfd,
    ];
}

/// How the test of a protection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The protection is present: the sandbox prevented what it must prevent.
    Holds,
    /// The protection does not exist on this host, for example because the kernel is too old.
    Absent,
    /// The protection should be present, but the test did what the protection must prevent.
    Broken,
}

/// The result of testing one protection on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The protection that was tested.
    pub protection: Protection,
    /// How the test of the protection ended.
    pub verdict: Verdict,
    /// What the test observed: a short phrase for users.
    pub found: String,
}

impl Finding {
    /// Returns the finding for a protection that passed its test.
    pub fn holds(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Holds, found: found.into() }
    }

    /// Returns the finding for a protection that this host does not provide.
    pub fn absent(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Absent, found: found.into() }
    }

    /// Returns the finding for a protection that failed its test.
    pub fn broken(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Broken, found: found.into() }
    }

    /// Returns the finding for a protection that passed its test (`Ok`) or failed it (`Err`). Both contain what the
    /// test observed.
    pub fn from_result(protection: Protection, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(found) => Self::holds(protection, found),
            Err(found) => Self::broken(protection, found),
        }
    }
}
