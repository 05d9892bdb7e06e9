//! Configuration for starting the zygotes and workers of a pool.

use std::path::PathBuf;

use lockhouse_protocol::{Finding, Protection, SandboxProfile};

use super::ControlGroupResult;

/// The command that starts a zygote, and the sandbox profile of the zygote's workers.
#[derive(Clone, Debug)]
pub struct ZygoteCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub profile: SandboxProfile,
    /// Whether a missing optional protection prevents the start.
    pub require_full: bool,
}

/// Configuration for starting the zygotes and workers of a pool.
#[derive(Debug)]
pub(super) struct LaunchConfig {
    pub(super) command: ZygoteCommand,
    /// The control groups for workers, or why there are none.
    pub(super) control_groups: ControlGroupResult,
}

impl LaunchConfig {
    /// Returns the finding on control groups for the table of protections.
    pub(super) fn control_group(&self) -> Finding {
        match &self.control_groups {
            Ok(_) => Finding::holds(Protection::ControlGroup, "each worker gets its own"),
            Err(reason) => Finding::absent(Protection::ControlGroup, format!("no control group ({reason})")),
        }
    }
}

/// The purpose of a forked worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkPurpose {
    /// A single execution.
    Execution,
    /// All runs of one session.
    Session,
}
