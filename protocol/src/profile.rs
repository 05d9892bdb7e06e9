//! Limits and sandbox parameters, as plain data.

use serde::{Deserialize, Serialize};

/// What one conversation with a worker may amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationLimits {
    /// Tool calls per execution.
    pub calls: u32,
    /// Requests that may await their reply at one time. The engine queues above it; more is a violation.
    pub parallel_calls: u32,
    /// Bytes of stdout and stderr together.
    pub output_bytes: u64,
    /// Bytes of one encoded message, either way.
    pub frame_bytes: u32,
}

/// How a zygote seals its workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    /// CPU time of one worker, seconds. SIGXCPU arrives here, SIGKILL one second later.
    pub cpu_seconds: u64,
    /// Memory that a worker may use beyond what its zygote has mapped, bytes.
    pub memory_bytes: u64,
    /// User and group to become when started as root. `None` keeps the user.
    pub unprivileged_id: Option<u32>,
    /// Python modules to import before the seal, besides the built-in list. Other engines ignore them.
    pub preload: Vec<String>,
    /// What the worker enforces on its own side of the conversation.
    pub limits: ConversationLimits,
}
