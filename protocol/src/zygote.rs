//! The messages between the supervisor and one zygote. Each is one datagram of a `SOCK_SEQPACKET` pair.

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::profile::SandboxProfile;

/// Bytes of one encoded zygote message.
pub const ZYGOTE_FRAME_BYTES_MAX: u32 = 64 * 1024;

/// Seccomp filters that each worker installs, and the supervisor counts.
pub const SECCOMP_FILTERS: u32 = 1;

/// The status of a worker whose stack overflowed in compiled code.
pub const STACK_OVERFLOW_STATUS: i32 = 72;

/// CPU time that the kernel lets the worker of a session use in all its runs, seconds.
pub const SESSION_CPU_SECONDS: u64 = 24 * 60 * 60;

/// Supervisor to zygote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToZygote {
    /// First and once: load everything, enter namespaces, try the seal.
    Prepare(SandboxProfile),
    /// Fork one worker.
    Fork {
        /// Whether it runs something small before it says that it is ready. That makes its one execution faster, and
        /// costs time that is better spent elsewhere when someone waits.
        warm: bool,
        /// Whether it is for a session. The kernel's own limit of its CPU time is then one for all runs together, and the
        /// supervisor keeps that of each.
        session: bool,
    },
}

/// Zygote to supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromZygote {
    /// Ready to fork.
    Prepared {
        /// Interpreter and version, for people.
        runtime: String,
        /// How each protection did when it was tried.
        findings: Vec<Finding>,
    },
    /// Cannot work here, and exits.
    Refused {
        /// What failed and what to do.
        reason: String,
    },
    /// A worker was born. Two descriptors come with it: its channel and its pidfd.
    Forked {
        /// As the zygote's PID namespace numbers it, which is the supervisor's.
        pid: i32,
    },
    /// A worker ended and was reaped.
    Exited {
        /// Which.
        pid: i32,
        /// How.
        exit: Exit,
        /// CPU time that it used, microseconds.
        cpu_us: u64,
        /// The largest amount of memory that it held at one time, bytes.
        peak_memory_bytes: u64,
    },
    /// The kernel refused a fork.
    ForkFailed {
        /// Its answer.
        reason: String,
    },
}

/// How a worker's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It left by itself, with this status.
    Status(i32),
    /// A signal ended it.
    Signal(i32),
}
