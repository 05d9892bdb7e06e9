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
    /// Whether all protections are required: the zygote start then fails if an optional one is missing.
    pub require_full: bool,
}

/// Configuration for starting the zygotes and workers of a pool.
#[derive(Debug)]
pub(super) struct LaunchConfig {
    pub(super) command: ZygoteCommand,
    /// The cgroup hierarchy for the control groups of workers, or the reason why workers have none.
    pub(super) control_groups: ControlGroupResult,
}

impl LaunchConfig {
    /// Reports whether workers get control groups, as a [`Finding`] beside those that the zygote reports.
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
    /// All runs of one session.
    Session,
}
