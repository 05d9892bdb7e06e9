//! The messages between the supervisor and one zygote. Each is one datagram of a `SOCK_SEQPACKET` pair.

use serde::{Deserialize, Serialize};

use crate::protection::Finding;
use crate::sandbox_profile::SandboxProfile;

/// Maximum number of bytes of an encoded message between supervisor and zygote.
pub const ZYGOTE_FRAME_BYTES_MAX: u32 = 64 * 1024;

/// The number of seccomp filters that each worker installs; the supervisor verifies it.
pub const SECCOMP_FILTERS: u32 = 1;

/// The exit status of a worker whose stack overflowed in compiled code.
pub const STACK_OVERFLOW_STATUS: i32 = 72;

/// The kernel's limit on the CPU time of a session's worker over all its runs, in seconds.
pub const SESSION_CPU_SECONDS: u64 = 24 * 60 * 60;

/// A message from the supervisor to a zygote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToZygote {
    /// Loads the interpreter, enters namespaces and tries the seal. The first message, sent once.
    Prepare(SandboxProfile),
    /// Forks one worker.
    Fork {
        /// Whether the worker runs a trivial program before it reports that it is ready. Warming makes its execution
        /// faster, but delays a worker that is needed at once.
        warm: bool,
        /// Whether the worker is for a session. The kernel then limits the CPU time of all its runs together, and the
        /// supervisor that of each run.
        session: bool,
    },
}

/// A message from a zygote to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromZygote {
    /// The zygote is ready to fork.
    Prepared {
        /// The interpreter and its version, for users.
        runtime: String,
        /// The result of trying each protection.
        findings: Vec<Finding>,
    },
    /// The zygote cannot work on this host, and exits.
    Refused {
        /// What failed on this host, and what the user can do about it.
        reason: String,
    },
    /// A worker was forked. Its channel and its pidfd are attached as two descriptors.
    Forked {
        /// The worker's process id in the PID namespace that zygote and supervisor share.
        pid: i32,
    },
    /// A worker ended and was reaped.
    Exited {
        /// The worker's process id.
        pid: i32,
        /// How the process ended.
        exit: Exit,
        /// The CPU time that the worker used, in microseconds.
        cpu_us: u64,
        /// The largest resident memory of the worker, in bytes.
        peak_memory_bytes: u64,
    },
    /// The kernel refused to fork a worker.
    ForkFailed {
        /// The system's error of the refused fork.
        reason: String,
    },
}

/// How a worker's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The process exited with this status.
    Status(i32),
    /// The process was killed by the signal with this number.
    Signal(i32),
}
