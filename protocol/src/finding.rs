//! What a zygote finds when it seals a worker without code and tries what the seal must refuse.

use serde::{Deserialize, Serialize};

/// One protection of workers. The supervisor knows which of them it cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protection {
    /// System calls that are not listed are refused.
    SystemCalls,
    /// System calls that only an attack makes end the worker.
    AttacksEndIt,
    /// `no_new_privs` is set.
    NoNewPrivileges,
    /// The user is not root.
    OrdinaryUser,
    /// No Linux capability.
    NoCapabilities,
    /// Not dumpable: no core, no ptrace by others of the same user.
    NotDumpable,
    /// Landlock refuses files.
    LandlockFiles,
    /// Landlock refuses TCP.
    LandlockTcp,
    /// Landlock refuses signals and abstract sockets to the outside.
    LandlockScopes,
    /// Namespaces of its own, with an empty root that cannot be written.
    EmptyRoot,
    /// A network namespace of its own, whose loopback is down.
    NoNetwork,
    /// Memory that was writable never becomes executable.
    WriteXorExecute,
    /// Memory and descriptors are limited, files and cores are not written.
    ResourceLimits,
    /// Nothing is open but the channel and three pipes to nowhere.
    Descriptors,
    /// A worker can be named by a descriptor, and so be ended for certain.
    Pidfd,
    /// A control group bounds memory and tasks of each worker.
    ControlGroup,
}

impl Protection {
    /// What a zygote must report on. The control group is the supervisor's own to find.
    pub const OF_THE_ZYGOTE: [Self; 15] = [
        Self::SystemCalls,
        Self::AttacksEndIt,
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

/// What became of trying one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is there, and what it must refuse was refused.
    Holds,
    /// This host does not give it.
    Absent,
    /// It should be there, and what it must refuse succeeded.
    Broken,
}

/// One protection, tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub protection: Protection,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What was seen, for people: a short phrase.
    pub found: String,
}

impl Finding {
    /// A protection that holds.
    pub fn holds(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Holds, found: found.into() }
    }

    /// A protection that this host does not give.
    pub fn absent(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Absent, found: found.into() }
    }

    /// A protection that does not hold what it should.
    pub fn broken(protection: Protection, found: impl Into<String>) -> Self {
        Self { protection, verdict: Verdict::Broken, found: found.into() }
    }

    /// One that holds, or else does not hold what it should.
    pub fn of(protection: Protection, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(found) => Self::holds(protection, found),
            Err(found) => Self::broken(protection, found),
        }
    }
}
