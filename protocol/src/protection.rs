//! The protections of workers, and what a zygote finds when it tries them: it seals a worker that gets no code and
//! attempts what the seal must prevent.

use serde::{Deserialize, Serialize};

/// A protection of workers. The supervisor decides which of them are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protection {
    /// System calls that the allowlist does not name are refused.
    SystemCalls,
    /// System calls that only an attack makes kill the worker.
    KillOnAttack,
    /// `no_new_privs` is set.
    NoNewPrivileges,
    /// The worker does not run as root.
    OrdinaryUser,
    /// The worker has no Linux capability.
    NoCapabilities,
    /// The worker is not dumpable: it leaves no core, and other processes of the same user cannot ptrace it.
    NotDumpable,
    /// Landlock denies access to files.
    LandlockFiles,
    /// Landlock denies TCP connections.
    LandlockTcp,
    /// Landlock denies signals and abstract sockets beyond the worker's domain.
    LandlockScopes,
    /// The worker has namespaces of its own, with an empty, read-only root file system.
    EmptyRoot,
    /// The worker has a network namespace of its own, whose loopback interface is down.
    NoNetwork,
    /// Memory that was writable cannot become executable.
    WriteXorExecute,
    /// Memory and descriptors are limited; the worker cannot write files or cores.
    ResourceLimits,
    /// The worker has no open descriptors but its channel and three unconnected pipes.
    Descriptors,
    /// The supervisor has a pidfd of the worker, so that it can kill exactly that process.
    Pidfd,
    /// A control group limits memory and tasks of each worker.
    ControlGroup,
}

impl Protection {
    /// The protections that a zygote must report on. The supervisor checks the control group itself.
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

/// The result of trying a protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The protection is present, and refused what it must refuse.
    Holds,
    /// The protection does not exist on this host, for example because the kernel is too old.
    Absent,
    /// The protection should be present, but what it must refuse succeeded.
    Broken,
}

/// The result of trying one protection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The protection that was tried.
    pub protection: Protection,
    /// Whether the protection holds.
    pub verdict: Verdict,
    /// What was observed, for users: a short phrase.
    pub found: String,
}

impl Finding {
    /// Reports a protection that holds.
    pub fn holds(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Holds, found: found.into() }
    }

    /// Reports a protection that this host does not provide.
    pub fn absent(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Absent, found: found.into() }
    }

    /// Reports a protection that failed.
    pub fn broken(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Broken, found: found.into() }
    }

    /// Reports a protection that holds with `Ok`, or failed with `Err`.
    pub fn from_result(protection: Protection, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(found) => Self::holds(protection, found),
            Err(found) => Self::broken(protection, found),
        }
    }
}
