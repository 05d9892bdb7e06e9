//! What the engine is started with. The configuration makes it; nothing here knows of files and keys.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_protocol::ServerName;

use crate::audit::AuditSettings;
use crate::execution::ExecutionLimits;
use crate::gate::{ApprovalSettings, PolicyFile};
use crate::language::Language;
use crate::pool::PoolSettings;
use crate::quotas::ClientLimits;
use crate::results;
use crate::sessions::SessionSettings;
use crate::skills::SkillSettings;
use crate::upstream::{Places, ServerDefinition};

/// The settings of all parts.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: ExecutionLimits,
    /// Bytes of submitted code.
    pub(crate) code_bytes_max: usize,
    /// Bytes of value, stdout and stderr, each, that an AI client is shown.
    pub(crate) shown_bytes: usize,
    /// What is kept of what is not shown.
    pub(crate) results: results::Bounds,
    pub(crate) audit: AuditSettings,
    pub(crate) servers: BTreeMap<ServerName, ServerDefinition>,
    /// Servers that were configured and that a requirement does not admit, each with why.
    pub(crate) refused: Vec<String>,
    pub(crate) places: Places,
    pub(crate) sessions: SessionSettings,
    pub(crate) runs: RunSettings,
    pub(crate) approvals: ApprovalSettings,
    pub(crate) skills: SkillSettings,
    /// The policy, if it is the user's own and an answer of theirs may change it.
    pub(crate) own_policy: Option<PolicyFile>,
    pub(crate) clients: ClientLimits,
    /// How long runs may take that are under way when it is to end.
    pub(crate) drain: Duration,
    /// Whether models have the tool `health`.
    pub(crate) health_tool: bool,
    /// The hash of the configuration and the servers files as they were read; none where there is no file.
    pub(crate) digest: Option<String>,
    /// The pool of each language, or why it cannot be started.
    pub(crate) python: Result<PoolSettings, String>,
    pub(crate) typescript: Result<PoolSettings, String>,
}

/// `[runs]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSettings {
    /// How long a request waits for the answer of its run.
    pub(crate) wait: Duration,
    /// Runs that go on without a request, at one time; and those of one client.
    pub(crate) background: usize,
    pub(crate) background_of_one: usize,
}

impl Settings {
    /// The pool of a language, or why it cannot be started.
    pub(super) fn pool(&self, language: Language) -> Result<&PoolSettings, String> {
        let pool = match language {
            Language::Python => &self.python,
            Language::Typescript => &self.typescript,
        };
        pool.as_ref().map_err(Clone::clone)
    }
}
