//! Settings of the engine crate. The configuration crate creates them from files; the engine crate knows no files and
//! no configuration keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_approvals::{ApprovalSettings, PolicyFile};
use lockhouse_audit::AuditSettings;
use lockhouse_host_files::HostFileSettings;
use lockhouse_messages::BuiltinTools;
use lockhouse_pool::PoolSettings;
use lockhouse_protocol::{Language, ServerName};
use lockhouse_stores::result_files::ResultFileLimits;
use lockhouse_stores::results;
use lockhouse_stores::skills::SkillSettings;
use lockhouse_upstream::{ServerDefinition, StoragePaths};

use super::unavailable_engine::MissingProgram;
use crate::client_quotas::ClientLimits;
use crate::execution::{DisplayLimits, ExecutionLimits};
use crate::sessions::SessionSettings;

/// The settings of all parts of the engine crate.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub limits: ExecutionLimits,
    /// Maximum size of submitted code, in bytes.
    pub code_bytes_max: usize,
    /// Limits on the size of the answer to a run that an AI client gets.
    pub display: DisplayLimits,
    /// Limits on the number and the size of stored results.
    pub results: results::ResultLimits,
    /// Limits on the number and the size of stored files.
    pub result_files: ResultFileLimits,
    /// Maximum size in bytes of a stored file that an AI client can read as a resource.
    pub resource_bytes_max: u64,
    /// The directory below which files are stored; `None` if there is none.
    pub state_directory: Option<PathBuf>,
    pub audit: AuditSettings,
    pub servers: BTreeMap<ServerName, ServerDefinition>,
    /// The files of this machine that programs may use, if the policy permits it.
    pub host_files: HostFileSettings,
    /// One message for each configured upstream server that the administrator's requirements exclude.
    pub refused: Vec<String>,
    /// Why the administrator lets nothing run. `None` if code may run.
    pub stop: Option<Arc<str>>,
    pub places: StoragePaths,
    pub sessions: SessionSettings,
    pub runs: BackgroundRunSettings,
    pub approvals: ApprovalSettings,
    pub skills: SkillSettings,
    /// The policy file, if an approval with the scope `always` may add rules to it. `None` if the file does not
    /// belong to the user.
    pub own_policy: Option<PolicyFile>,
    /// Where the proposed policy of the person is whom this engine of the system serves. `None` for other engines.
    pub proposal: Option<ProposalFiles>,
    pub clients: ClientLimits,
    /// The directory of a socket for people of other accounts; `None` if only root and this account operate the engine.
    pub operators: Option<PathBuf>,
    /// How long active runs may continue after a shutdown was requested.
    pub drain: Duration,
    /// Which of Lockhouse's own tools AI clients get, and under which names.
    pub builtin_tools: BuiltinTools,
    /// Whether the list of tools of an AI client includes direct tools that the policy denies, each with the reason of
    /// the denial.
    pub list_denied_tools: bool,
    /// Maximum time for which a list request of an AI client waits until the tools of directly exposed servers are
    /// known.
    pub first_list_wait: Duration,
    /// Maximum number of tokens (an estimate) of the tool signatures in the description of `run_code`.
    pub catalogue_tokens: usize,
    /// SHA-256 of the configuration file and the servers files. `None` if there is no file.
    pub digest: Option<String>,
    /// SHA-256 of the administrator's requirements and of the policies that they name. `None` if there are none.
    pub requirements_digest: Option<String>,
    /// The settings of the Python worker pool, or the program that is missing for Python.
    pub python: Result<PoolSettings, MissingProgram>,
    /// The settings of the TypeScript worker pool, or the program that is missing for TypeScript.
    pub typescript: Result<PoolSettings, MissingProgram>,
    /// The settings of the pool of Python workers with packages. `None` if the configuration names no packages.
    pub packages: Option<PackageSettings>,
}

/// The files of the policy of an engine of the system, and of the policy that its person proposes.
#[derive(Clone, Debug)]
pub struct ProposalFiles {
    pub proposed: PathBuf,
    /// The places of the approved policy: the first one that exists is in use, and an accepted proposal is written to the first.
    pub approved: Vec<PathBuf>,
}

/// The settings of Python workers with packages.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSettings {
    /// The settings of their pool, or what is missing for it.
    pub pool: Result<PoolSettings, MissingProgram>,
    /// The names of the packages, without versions.
    pub names: Vec<String>,
    /// The names of the top-level modules that these workers have in addition to the standard ones.
    pub modules: BTreeSet<String>,
}

/// The settings of background runs, from the configuration table `[runs]`.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundRunSettings {
    /// How long a request waits for the answer of its run before the run continues in the background.
    pub wait: Duration,
    /// Maximum number of background runs of all AI clients.
    pub background: usize,
    /// Maximum number of background runs of each AI client.
    pub background_per_client: usize,
    /// How long a background run continues after the AI client has cancelled a request that waited for it, unless the
    /// client asks for the run again.
    pub abandoned: Duration,
}

impl EngineSettings {
    /// Returns the pool settings of a language, or as `Err` the program that is missing for it.
    pub(super) fn pool(&self, language: Language) -> Result<&PoolSettings, &MissingProgram> {
        match language {
            Language::Python => self.python.as_ref(),
            Language::Typescript => self.typescript.as_ref(),
        }
    }
}
