//! The messages between the supervisor and one zygote. Each message is one datagram of a `SOCK_SEQPACKET` socket
//! pair.

use serde::{Deserialize, Serialize};

use crate::protection::Finding;
use crate::sandbox_profile::SandboxProfile;

/// Maximum size of one encoded message between supervisor and zygote, in bytes, without the length field of its frame.
/// Bound: workers and programs.
pub const ZYGOTE_FRAME_BYTES_MAX: u32 = 64 * 1024;

/// The number of seccomp filters of each worker: one that it inherits from its zygote, and one that it installs. The
/// supervisor verifies this number from outside.
pub const SECCOMP_FILTERS: u32 = 2;

/// The exit status of a worker process whose stack overflowed in compiled (C) code.
pub const STACK_OVERFLOW_STATUS: i32 = 72;

/// The maximum CPU time of a session's worker, in seconds (24 hours), for all runs of the session together. The kernel
/// enforces it.
/// Bound: workers and programs.
pub const SESSION_CPU_SECONDS: u64 = 24 * 60 * 60;

/// A message from the supervisor to a zygote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToZygote {
    /// Tells the zygote to load the language engine, to enter namespaces, and to test the sandbox. It is the first
    /// message, and is sent once.
    Prepare(SandboxProfile),
    /// Tells the zygote to fork one worker.
    Fork {
        /// Whether the worker runs a trivial program as a warm-up before it reports that it is ready. The warm-up makes
        /// the worker's first run faster, but delays a run that already waits for this worker.
        warm: bool,
        /// Whether the worker is for a session. The kernel then limits the CPU time of all its runs together, and the
        /// supervisor limits the CPU time of each run.
        session: bool,
    },
}

/// A message from a zygote to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromZygote {
    /// The zygote is ready to fork workers.
    Prepared {
        /// The name and version of the language engine, for users.
        runtime: String,
        /// The result of testing each protection of the sandbox.
        findings: Vec<Finding>,
        /// The Python packages that the zygote has loaded, in the order of the configuration.
        packages: Vec<LoadedPackage>,
    },
    /// The zygote cannot work on this host, and exits.
    Refused {
        /// What failed on this host, and what the user can do about it.
        reason: String,
    },
    /// A worker was forked. The message carries two descriptors: the worker's socket and its pidfd.
    Forked {
        /// The worker's process id in the PID namespace that zygote and supervisor share.
        pid: i32,
    },
    /// A worker process ended, and the zygote has reaped it.
    Exited {
        /// The worker's process id.
        pid: i32,
        /// How the process ended.
        exit: Exit,
        /// The CPU time that the worker used in total, in microseconds.
        cpu_us: u64,
        /// The peak resident memory of the worker, in bytes.
        peak_memory_bytes: u64,
    },
    /// The fork of a worker failed.
    ForkFailed {
        /// The error of the operating system.
        reason: String,
    },
}

/// A Python package that a zygote has loaded, with what it cost. Parts that several packages use count for the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedPackage {
    /// The name of the package.
    pub name: String,
    /// The installed version.
    pub version: String,
    /// How much resident memory the zygote gained while it imported the package, in KiB.
    pub memory_kib: u64,
    /// How long the import took, in milliseconds.
    pub import_ms: u64,
}

/// How a worker process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The worker process exited with this status.
    Status(i32),
    /// This signal killed the worker process.
    Signal(i32),
}
