//! How the zygotes and workers of a pool are started.

use std::path::PathBuf;

use lockhouse_protocol::{Finding, Protection, SandboxProfile};

use super::Groups;

/// How a zygote is started.
#[derive(Clone, Debug)]
pub struct ZygoteCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub profile: SandboxProfile,
    /// Whether a protection that is only absent is fatal too.
    pub require_full: bool,
}

/// How the zygotes and workers of a pool are started.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) command: ZygoteCommand,
    /// Where each worker gets a control group, or why it gets none.
    pub(super) control_groups: Groups,
}

impl Launch {
    /// Whether each worker gets a control group, as the table of protections has it.
    pub(super) fn control_group(&self) -> Finding {
        match &self.control_groups {
            Ok(_) => Finding::holds(Protection::ControlGroup, "each worker gets its own"),
            Err(reason) => Finding::absent(Protection::ControlGroup, format!("no control group ({reason})")),
        }
    }
}

/// What a worker is forked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One execution.
    Execution,
    /// All runs of one session.
    Session,
}
