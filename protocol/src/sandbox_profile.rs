//! The limits and sandbox parameters of worker processes.

use serde::{Deserialize, Serialize};

/// The number of bytes of a message that are reserved for the fields other than its JSON value, such as names. The JSON
/// value may use the other bytes that the limit on messages permits.
pub const FRAME_OVERHEAD_BYTES: u32 = 64 * 1024;

/// The limits on the messages between supervisor and worker in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationLimits {
    /// The maximum number of calls of upstream servers in one execution.
    pub calls: u32,
    /// The maximum number of requests that wait for a reply at the same time. The worker must queue further requests; a
    /// worker that sends them anyway violates the protocol.
    pub parallel_calls: u32,
    /// The maximum total size of an execution's stdout and stderr, in bytes.
    pub output_bytes: u64,
    /// The maximum size of one encoded message between supervisor and worker, in bytes. The JSON value in a message may
    /// use at most this size minus [`FRAME_OVERHEAD_BYTES`].
    pub frame_bytes: u32,
}

impl ConversationLimits {
    /// Returns the maximum size, in bytes of JSON text, of a tool result or of a program's value.
    #[must_use]
    pub fn value_bytes(&self) -> u32 {
        self.frame_bytes.saturating_sub(FRAME_OVERHEAD_BYTES)
    }
}

/// The Python packages that the workers of a zygote have, of those that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PythonPackages {
    /// None. The value has the names of the top-level modules that workers of another zygote have, so that the error
    /// for a missing module can say so.
    Elsewhere(Vec<String>),
    /// All of them. The value has their names, each possibly with a version specifier.
    Loaded(Vec<String>),
}

impl PythonPackages {
    /// Returns the value for a host without packages.
    #[must_use]
    pub fn none() -> Self {
        Self::Elsewhere(Vec::new())
    }
}

/// The parameters of the sandbox that the workers of a zygote enter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    /// The maximum CPU time of a worker that runs one execution, in seconds; a session's worker may use
    /// [`SESSION_CPU_SECONDS`](crate::zygote_messages::SESSION_CPU_SECONDS). The kernel sends SIGXCPU at this limit,
    /// and SIGKILL one second later.
    pub cpu_seconds: u64,
    /// The maximum memory of a worker, in bytes, in addition to the memory that its zygote has mapped.
    pub memory_bytes: u64,
    /// The user id and group id that a zygote switches to if it was started as root; `None` if it keeps its user.
    pub unprivileged_id: Option<u32>,
    /// Python modules that the zygote imports before it forks workers, in addition to the built-in list. Zygotes
    /// for other languages ignore this field.
    pub preload: Vec<String>,
    /// The Python packages of the workers. Zygotes for other languages ignore this field.
    pub packages: PythonPackages,
    /// The modules that programs may not import, with those below them. No part of the sandbox: it is the interpreter that
    /// refuses them.
    pub denied_modules: Vec<String>,
    /// The limits on messages. The worker keeps to `parallel_calls` and `frame_bytes`; the supervisor enforces all
    /// limits.
    pub limits: ConversationLimits,
}
