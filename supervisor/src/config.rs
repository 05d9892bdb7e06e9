//! The configuration: files people write, checked whole, turned into the settings that each part takes.

mod document;
mod locate;
mod servers_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_policies::{Diagnostics, Policy, Source};
use lockhouse_protocol::{ConversationLimits, SandboxProfile, ServerName};

use crate::execution::ExecutionLimits;
use crate::pool::{ControlGroups, PoolSettings, ZygoteCommand};
use crate::upstream::ServerDefinition;

/// Bytes of a configuration, policy or servers file.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Loads the extension by its path, from an interpreter that sees nothing of the user's environment.
const PYTHON_ENTRY: &str = "\
import sys
if sys.version_info < (3, 10): sys.exit('Python %d.%d is too old: Lockhouse needs 3.10 or later' % sys.version_info[:2])
from importlib import machinery, util
loader = machinery.ExtensionFileLoader('_lockhouse', sys.argv[1])
sys.argv, sys.orig_argv = [''], ['']
module = util.module_from_spec(util.spec_from_loader('_lockhouse', loader))
loader.exec_module(module)
sys.modules['_lockhouse'] = module
module.zygote()
";

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Faults in a file, each with its place.
    #[error(transparent)]
    Faults(#[from] Diagnostics),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file is not what it must be.
    #[error("cannot use {path}: {reason}")]
    Unusable { path: PathBuf, reason: String },
    /// A program of ours, or the Python interpreter, is nowhere.
    #[error("cannot find {what}; looked at {places}. {advice}")]
    Missing { what: &'static str, places: String, advice: &'static str },
    /// Neither of the places where state may be kept is known.
    #[error(
        "no place to keep the audit log: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or audit.directory in the configuration"
    )]
    NoStateDirectory,
    /// Neither of the places where a policy may be kept is known.
    #[error("no place for the policy: set HOME or XDG_CONFIG_HOME, or name it with --policy")]
    NoPolicyDirectory,
}

/// The files named on the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Files {
    /// Configuration file [default: ~/.config/lockhouse/config.toml, then /etc/lockhouse/config.toml]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Policy file [default: policy.toml in the same places]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) policy: Option<PathBuf>,
    /// Servers file: an AI client's own JSON with `mcpServers`, unchanged
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) servers: Option<PathBuf>,
}

/// Where workers get control groups, or why they get none.
pub(crate) type Groups = Result<ControlGroups, String>;

/// Everything that was configured, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: ExecutionLimits,
    /// Bytes of submitted code.
    pub(crate) code_bytes_max: usize,
    /// Bytes of value, stdout and stderr, each, that an AI client is shown.
    pub(crate) shown_bytes: usize,
    pub(crate) audit_directory: PathBuf,
    pub(crate) servers: BTreeMap<ServerName, ServerDefinition>,
    document: document::Document,
}

impl Settings {
    /// Reads the configuration and the servers file.
    ///
    /// # Errors
    /// [`ConfigError`], with every fault of the file that it is about.
    pub(crate) fn load(files: &Files) -> Result<Self, ConfigError> {
        let path = locate::file(files.config.as_deref(), "config.toml");
        let document = match &path {
            Some(path) => document::Document::parse(&read(path)?)?,
            None => document::Document::default(),
        };
        let mut servers = document.servers(&path.unwrap_or_default().display().to_string());
        if let Some(path) = &files.servers {
            servers.extend(servers_file::parse(&read(path)?, document.server_limits())?);
        }
        let audit_directory = match &document.audit.directory {
            Some(directory) => directory.clone(),
            None => locate::state_directory().ok_or(ConfigError::NoStateDirectory)?.join("audit"),
        };
        Ok(Self {
            limits: limits(&document.limits),
            code_bytes_max: document.limits.code_kib as usize * 1024,
            shown_bytes: document.limits.shown_bytes as usize,
            audit_directory,
            servers,
            document,
        })
    }

    /// The pool of the Python engine.
    pub(crate) fn python(&self, groups: &Groups) -> Result<PoolSettings, ConfigError> {
        let python = &self.document.python;
        let program = locate::python(python.interpreter.as_deref())?;
        let extension =
            locate::companion(python.extension.as_deref(), "liblockhouse_python.so", "the Python engine")?;
        let arguments = ["-I", "-B", "-c", PYTHON_ENTRY].map(str::to_owned).into_iter();
        let arguments = arguments.chain([extension.to_string_lossy().into_owned()]).collect();
        Ok(self.pool(program, arguments, python.preload.clone(), groups))
    }

    /// The pool of the JavaScript engine.
    pub(crate) fn typescript(&self, groups: &Groups) -> Result<PoolSettings, ConfigError> {
        let worker = self.document.javascript.worker.as_deref();
        let program = locate::companion(worker, "lockhouse-worker", "the JavaScript engine")?;
        Ok(self.pool(program, Vec::new(), Vec::new(), groups))
    }

    fn pool(
        &self,
        program: PathBuf,
        arguments: Vec<String>,
        preload: Vec<String>,
        control_groups: &Groups,
    ) -> PoolSettings {
        let (pool, limits) = (&self.document.pool, &self.limits);
        let profile = SandboxProfile {
            cpu_seconds: limits.cpu.as_secs(),
            memory_bytes: limits.memory_bytes,
            unprivileged_id: nix::unistd::geteuid().is_root().then_some(pool.unprivileged_id),
            preload,
            limits: limits.conversation,
        };
        PoolSettings {
            zygote: Arc::new(ZygoteCommand {
                program,
                arguments,
                profile,
                require_full: pool.require_full,
                control_groups: control_groups.clone(),
            }),
            idle: pool.idle as usize,
            running_max: pool.running as usize,
            queue_max: pool.queue as usize,
            recycle_after: pool.recycle_after,
            recycle_age: Duration::from_secs(pool.recycle_seconds.into()),
        }
    }
}

/// Reads the policy; without one, everything is denied, with a hint.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_policy(files: &Files) -> Result<Policy, ConfigError> {
    match find_policy(files) {
        Some(path) => Ok(Policy::parse(read(&path)?)?),
        None => Ok(Policy::empty()),
    }
}

/// The policy file that is in force, if there is one.
pub(crate) fn find_policy(files: &Files) -> Option<PathBuf> {
    locate::file(files.policy.as_deref(), "policy.toml")
}

/// Where `policy init` writes.
pub(crate) fn policy_path(files: &Files) -> Result<PathBuf, ConfigError> {
    let default = || locate::user_directory().map(|directory| directory.join("policy.toml"));
    files.policy.clone().or_else(default).ok_or(ConfigError::NoPolicyDirectory)
}

fn read(path: &Path) -> Result<Source, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let unusable = |reason: String| ConfigError::Unusable { path: path.to_owned(), reason };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unusable("it is not a regular file".into()));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(unusable(format!("it has {} bytes, the limit is {FILE_BYTES_MAX}", metadata.len())));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        unusable(format!("it is not UTF-8: line {line} has an invalid byte"))
    })?;
    Ok(Source { path: path.display().to_string(), text })
}

fn limits(document: &document::Limits) -> ExecutionLimits {
    ExecutionLimits {
        wall: Duration::from_secs_f64(document.timeout_seconds),
        question: Duration::from_secs_f64(document.question_seconds),
        grace: Duration::from_millis(document.grace_ms.into()),
        cpu: Duration::from_secs(document.cpu_seconds.into()),
        memory_bytes: u64::from(document.memory_mib) * 1024 * 1024,
        conversation: ConversationLimits {
            calls: document.calls,
            parallel_calls: document.parallel_calls,
            output_bytes: u64::from(document.output_kib) * 1024,
            frame_bytes: document.frame_kib * 1024,
        },
    }
}
