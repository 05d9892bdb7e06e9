//! Configuration for starting the processes of a pool: the workers, and the zygotes from which they are
//! forked.

use std::path::PathBuf;

use lockhouse_protocol::{Finding, Protection, SandboxProfile};

use super::ControlGroupResult;

/// The command that starts a zygote, and the sandbox profile of its workers.
#[derive(Clone, Debug, PartialEq)]
pub struct ZygoteCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub profile: SandboxProfile,
    /// Whether the optional sandbox protections are required too. If so, the start of the zygote fails when any
    /// protection is missing.
    pub require_full: bool,
}

/// Configuration for starting the processes of a pool: the workers, and the zygotes from which they are
/// forked.
#[derive(Debug)]
pub(super) struct LaunchConfig {
    pub(super) command: ZygoteCommand,
    /// The cgroup hierarchy in which each worker gets its control group, or the reason why workers have no control
    /// groups.
    pub(super) control_groups: ControlGroupResult,
}

impl LaunchConfig {
    /// Returns a [`Finding`] that says whether workers get control groups. The zygote tests and reports all other
    /// sandbox protections.
    pub(super) fn control_group(&self) -> Finding {
        match &self.control_groups {
            Ok(_) => Finding::holds(Protection::ControlGroup, "each worker gets its own"),
            Err(reason) => Finding::absent(Protection::ControlGroup, format!("no control group ({reason})")),
        }
    }
}

/// What a forked worker will be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkPurpose {
    /// A single execution.
    Execution,
    /// All runs of one session, which keeps its worker between runs.
    Session,
}
