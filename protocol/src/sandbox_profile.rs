//! The limits and sandbox parameters of workers, as plain data.

use serde::{Deserialize, Serialize};

/// The limits on what one execution may send and request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationLimits {
    /// The maximum number of tool calls in one execution.
    pub calls: u32,
    /// The maximum number of requests of a worker that wait for a reply at the same time. The engine in the worker
    /// queues further requests; a worker that sends them violates the protocol.
    pub parallel_calls: u32,
    /// The maximum total size of an execution's stdout and stderr, in bytes.
    pub output_bytes: u64,
    /// The maximum size of one encoded message in either direction, in bytes.
    pub frame_bytes: u32,
}

/// The parameters with which a zygote seals its workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    /// CPU time of one worker, in seconds. The kernel sends SIGXCPU at this limit, and SIGKILL one second later.
    pub cpu_seconds: u64,
    /// Memory that a worker may use beyond the memory that its zygote has mapped, in bytes.
    pub memory_bytes: u64,
    /// The user and group id to switch to when started as root; `None` keeps the user.
    pub unprivileged_id: Option<u32>,
    /// Python modules to import before sealing, besides the built-in list. Other engines ignore them.
    pub preload: Vec<String>,
    /// The limits that the worker enforces on itself.
    pub limits: ConversationLimits,
}
