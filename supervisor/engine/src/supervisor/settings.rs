//! What the engine is started with. The configuration makes it; nothing here knows of files and keys.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_audit::AuditSettings;
use lockhouse_base::language::Language;
use lockhouse_gate::skills::SkillSettings;
use lockhouse_gate::{ApprovalSettings, PolicyFile, results};
use lockhouse_pool::PoolSettings;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Places, ServerDefinition};

use super::unavailable::MissingProgram;
use crate::execution::{DisplayLimits, ExecutionLimits};
use crate::quotas::ClientLimits;
use crate::sessions::SessionSettings;

/// The settings of all parts.
#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: ExecutionLimits,
    /// Bytes of submitted code.
    pub code_bytes_max: usize,
    /// What an AI client is shown of an answer.
    pub display: DisplayLimits,
    /// What is kept of what is not shown.
    pub results: results::Bounds,
    pub audit: AuditSettings,
    pub servers: BTreeMap<ServerName, ServerDefinition>,
    /// Servers that were configured and that a requirement does not admit, each with why.
    pub refused: Vec<String>,
    pub places: Places,
    pub sessions: SessionSettings,
    pub runs: RunSettings,
    pub approvals: ApprovalSettings,
    pub skills: SkillSettings,
    /// The policy, if it is the user's own and an answer of theirs may change it.
    pub own_policy: Option<PolicyFile>,
    pub clients: ClientLimits,
    /// How long runs may take that are under way when it is to end.
    pub drain: Duration,
    /// Whether models have the tool `health`.
    pub health_tool: bool,
    /// The hash of the configuration and the servers files as they were read; none where there is no file.
    pub digest: Option<String>,
    /// The pool of each language, or why it cannot be started.
    pub python: Result<PoolSettings, MissingProgram>,
    pub typescript: Result<PoolSettings, MissingProgram>,
}

/// `[runs]`
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    /// How long a request waits for the answer of its run.
    pub wait: Duration,
    /// Runs that go on without a request, at one time; and those of one client.
    pub background: usize,
    pub background_of_one: usize,
}

impl Settings {
    /// The pool of a language, or why it cannot be started.
    pub(super) fn pool(&self, language: Language) -> Result<&PoolSettings, &MissingProgram> {
        match language {
            Language::Python => self.python.as_ref(),
            Language::Typescript => self.typescript.as_ref(),
        }
    }
}
