//! Settings of the engine. The configuration crate creates them; the engine knows no files and no configuration keys.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_audit::AuditSettings;
use lockhouse_base::language::Language;
use lockhouse_gate::skills::SkillSettings;
use lockhouse_gate::{ApprovalSettings, PolicyFile, results};
use lockhouse_pool::PoolSettings;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, StoragePaths};

use super::unavailable_engine::MissingProgram;
use crate::client_quotas::ClientLimits;
use crate::execution::{DisplayLimits, ExecutionLimits};
use crate::sessions::SessionSettings;

/// The settings of all parts of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: ExecutionLimits,
    /// Maximum size of submitted code, in bytes.
    pub code_bytes_max: usize,
    /// Limits for the answer that an AI client gets.
    pub display: DisplayLimits,
    /// Limits for stored results.
    pub results: results::ResultLimits,
    pub audit: AuditSettings,
    pub servers: BTreeMap<ServerName, ServerDefinition>,
    /// One message for each configured upstream server that a required setting excludes.
    pub refused: Vec<String>,
    pub places: StoragePaths,
    pub sessions: SessionSettings,
    pub runs: BackgroundRunSettings,
    pub approvals: ApprovalSettings,
    pub skills: SkillSettings,
    /// The policy file, if it belongs to the user and an approval with the scope `always` may change it.
    pub own_policy: Option<PolicyFile>,
    pub clients: ClientLimits,
    /// How long active runs may continue after a shutdown was requested.
    pub drain: Duration,
    /// Whether AI clients get the tool `health`.
    pub health_tool: bool,
    /// Digest of the configuration file and the servers files. `None` if there is no file.
    pub digest: Option<String>,
    /// The worker pool of each language, or the program that is missing.
    pub python: Result<PoolSettings, MissingProgram>,
    pub typescript: Result<PoolSettings, MissingProgram>,
}

/// Settings of the table `[runs]`.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundRunSettings {
    /// How long a request waits for the answer of its run before the run continues in the background.
    pub wait: Duration,
    /// Maximum number of background runs: of all clients, and of each client.
    pub background: usize,
    pub background_per_client: usize,
}

impl Settings {
    /// The pool settings of a language, or the program that is missing.
    pub(super) fn pool(&self, language: Language) -> Result<&PoolSettings, &MissingProgram> {
        match language {
            Language::Python => self.python.as_ref(),
            Language::Typescript => self.typescript.as_ref(),
        }
    }
}
