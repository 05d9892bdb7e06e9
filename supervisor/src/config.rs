//! The configuration: files people write, checked whole, turned into the settings that each part takes.

mod admission;
mod clients;
mod dialects;
mod document;
mod edit;
mod entry;
mod env_file;
mod excerpts;
mod faults;
mod http;
mod insertion;
mod left_out;
mod locate;
mod own_table;
mod partial;
mod permissions;
mod plaintext;
mod pools;
mod ranges;
mod references;
mod requirements;
mod roster;
mod servers;
mod unused;
mod written;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_audit as audit;
use lockhouse_audit::{AuditSettings, digest};
use lockhouse_base::directories;
use lockhouse_base::telemetry::log;
use lockhouse_base::text_files::{ReadError, read_source};
use lockhouse_engine::execution::ExecutionLimits;
use lockhouse_engine::sessions::SessionSettings;
use lockhouse_engine::supervisor::{self, RunSettings};
use lockhouse_front::access::TokenFile;
use lockhouse_front::http::{Address, HttpSettings};
use lockhouse_gate::skills::SkillSettings;
use lockhouse_gate::{ApprovalSettings, PolicyFile, results};
use lockhouse_policies::{Diagnostic, Diagnostics, Policy, Source};
use lockhouse_protocol::ConversationLimits;
use lockhouse_upstream::{Places, ServerLimits};

use requirements::Requirements;

pub(crate) use clients::{Client, project_files};
pub(crate) use dialects::{Listed, Listing};
pub(crate) use edit::Edit;
pub(crate) use entry::Entry;
pub(crate) use insertion::{Insertion, StartEntry, insert};
pub(crate) use left_out::LeftOut;
pub(crate) use own_table::own_table;
pub(crate) use permissions::ReadableSecret;
pub(crate) use plaintext::{keep, looks_secret, with_references};
pub(crate) use references::{Surroundings, Unresolved};
pub(crate) use roster::usable;
pub(crate) use unused::Unused;
pub(crate) use written::Written;

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Faults in a file, each with its place.
    #[error(transparent)]
    Faults(#[from] Diagnostics),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: std::io::Error },
    /// A change that would leave a configuration that cannot be used.
    #[error("{path} stays as it was, since it would not be valid with the change:\n{reason}")]
    Refused { path: PathBuf, reason: String },
    /// There is a configuration for everyone, and none of this user.
    #[error(
        "{path} is in force, and a configuration of your own would take its place with all that it sets: name the file to change with --config"
    )]
    SystemWide { path: PathBuf },
    /// Neither of the places where a configuration may be kept is known.
    #[error("no place for the configuration: set HOME or XDG_CONFIG_HOME, or name it with --config")]
    NoConfigDirectory,
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

impl From<ReadError> for ConfigError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable { path, source } => Self::Unreadable { path, source },
            ReadError::Unusable { path, reason } => Self::Unusable { path, reason },
        }
    }
}

impl ConfigError {
    /// What is wrong, without lines of the file: they may have what must be seen nowhere else.
    pub(crate) fn without_excerpts(&self) -> String {
        match self {
            Self::Faults(Diagnostics(faults)) => {
                let files: BTreeSet<&str> = faults.iter().map(Diagnostic::path).collect();
                let files = files.into_iter().collect::<Vec<_>>().join(", ");
                format!("{} faults in {files}; the log on standard error has them", faults.len())
            }
            other => other.to_string(),
        }
    }
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
    /// Servers file: an AI client's own, unchanged; may be given several times, and the first of one name counts
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) servers: Vec<PathBuf>,
}

/// Everything that was configured, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) engine: supervisor::Settings,
    /// Servers that were left out, whatever the reason.
    pub(crate) unused: Vec<Unused>,
    pub(crate) http: HttpSettings,
    /// Where figures are open to whoever reaches it.
    pub(crate) metrics: Vec<Address>,
    document: document::Document,
    /// The configuration file; empty where there is none.
    path: PathBuf,
}

impl Settings {
    /// Reads the configuration and the servers files.
    ///
    /// # Errors
    /// [`ConfigError`], with every fault of the file that it is about.
    pub(crate) fn load(files: &Files) -> Result<Self, ConfigError> {
        let surroundings = Surroundings::of_process();
        let (document, path) = load_document(files, &surroundings)?;
        let mut gathering = servers::Gathering::new(&surroundings, document.server_limits());
        for file in &files.servers {
            gathering.file(file)?;
        }
        gathering.list(&path.display().to_string(), document.servers.clone());
        for file in &document.servers_files {
            gathering.named_file(file, &path)?;
        }
        if let Some(state) = directories::state() {
            permissions::refuse_if_writable(&state)?;
        }
        let requirements = Requirements::load(document.server_limits(), &surroundings)?;
        let digests: Vec<String> = document.digest.iter().chain(gathering.digests()).cloned().collect();
        let (servers, mut unused) = gathering.into_servers();
        let (servers, refused) = requirements.apply(servers);
        unused.extend(refused.iter().map(Unused::from));
        let engine = supervisor::Settings {
            limits: limits(&document.limits),
            approvals: approvals(&document),
            skills: skills(&document.skills, &path, &surroundings),
            own_policy: own_policy(files),
            code_bytes_max: document.limits.code_kib as usize * 1024,
            shown_bytes: document.limits.shown_bytes as usize,
            results: result_bounds(&document.results),
            audit: audit_settings(&document.audit)?,
            servers,
            places: Places {
                cache: directories::cache(),
                state: directories::state(),
                tools_lifetime: Duration::from_secs(u64::from(document.catalogue.lifetime_hours) * 3_600),
                learns_shapes: document.catalogue.learn,
            },
            sessions: sessions(&document),
            runs: runs(&document.runs),
            refused: refused.iter().map(ToString::to_string).collect(),
            clients: admission::limits(&document.clients),
            drain: Duration::from_secs_f64(document.service.drain_seconds),
            health_tool: document.tools.health,
            digest: digest::of_files(&digests),
            python: pools::python(&document).map_err(|error| error.to_string()),
            typescript: pools::typescript(&document).map_err(|error| error.to_string()),
        };
        Ok(Self {
            engine,
            unused,
            http: {
                let access = admission::settings(&document, &path, &surroundings)?;
                document.http.settings(access, document.limits.code_kib, &path, &surroundings)
            },
            metrics: document.metrics.listen.clone(),
            document,
            path,
        })
    }

    /// Files with secrets that others can read: keys, tokens, and what the configuration refers to.
    pub(crate) fn readable_secrets(&self) -> Vec<ReadableSecret> {
        let surroundings = Surroundings::of_process();
        let kept = secrets_directory().into_iter().flat_map(|directory| permissions::files_in(&directory));
        let keys = audit::key_files(&self.engine.audit.keys);
        let tokens = admission::token_file(&self.document.http, &self.path, &surroundings);
        let tokens = tokens.map(|tokens| tokens.path().to_owned());
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let referenced = referenced_files(&text).map(|path| beside.join(surroundings.expand_home(path)));
        let mut files: Vec<PathBuf> = kept.chain(keys).chain(tokens).chain(referenced).collect();
        files.sort_unstable();
        files.dedup();
        permissions::readable_secrets(files.into_iter())
    }

    /// The tables of the configuration that differ and that nobody looks at while Lockhouse runs.
    pub(crate) fn that_need_a_restart(&self, other: &Self) -> Vec<&'static str> {
        self.document.that_need_a_restart(&other.document)
    }
}

/// The configuration that is in force and its file; where there is none, all defaults and an empty path.
fn load_document(
    files: &Files,
    surroundings: &Surroundings,
) -> Result<(document::Document, PathBuf), ConfigError> {
    match config_path(files) {
        Some(path) => {
            permissions::refuse_if_writable(&path)?;
            let source = read_source(&path)?;
            let mut document = document::Document::parse(&source, surroundings)?;
            document.digest = Some(digest::of_text(&source.text));
            document.expand_home(surroundings);
            Ok((document, path))
        }
        None => Ok((document::Document::default(), PathBuf::new())),
    }
}

/// The configuration that is in force, if there is a file.
pub(crate) fn config_path(files: &Files) -> Option<PathBuf> {
    locate::file(files.config.as_deref(), "config.toml")
}

/// What the log is written in, of the configuration alone; its default where that cannot be read, which is told later.
pub(crate) fn log_format(files: &Files) -> log::Format {
    let document = load_document(files, &Surroundings::of_process());
    document.map(|(document, _)| document.log.format).unwrap_or_default()
}

/// Where the audit log is, of the configuration alone: servers files may be as they like.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_audit_settings(files: &Files) -> Result<AuditSettings, ConfigError> {
    audit_settings(&load_document(files, &Surroundings::of_process())?.0.audit)
}

/// What is kept of results, and how much of one is shown, of the configuration alone.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_result_bounds(files: &Files) -> Result<(results::Bounds, usize), ConfigError> {
    let (document, _) = load_document(files, &Surroundings::of_process())?;
    Ok((result_bounds(&document.results), document.limits.shown_bytes as usize))
}

fn result_bounds(document: &document::Results) -> results::Bounds {
    results::Bounds {
        bytes: u64::from(document.keep_mib) * 1024 * 1024,
        lifetime: Duration::from_secs(document.keep_seconds.into()),
    }
}

/// What is configured of skills, of the configuration alone.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_skill_settings(files: &Files) -> Result<SkillSettings, ConfigError> {
    let surroundings = Surroundings::of_process();
    let (document, path) = load_document(files, &surroundings)?;
    Ok(skills(&document.skills, &path, &surroundings))
}

/// Directories are taken from where the configuration is.
fn skills(document: &document::Skills, configuration: &Path, surroundings: &Surroundings) -> SkillSettings {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let shared = document.directories.iter().map(|path| beside.join(surroundings.expand_home(path)));
    SkillSettings {
        enabled: document.enabled,
        own: directories::state().map(|state| state.join("skills")),
        shared: shared.collect(),
    }
}

fn audit_settings(document: &document::Audit) -> Result<AuditSettings, ConfigError> {
    let state = directories::state();
    let below_state = || state.as_ref().map(|state| state.join("audit"));
    let directory = document.directory.clone().or_else(directories::logs).or_else(below_state);
    let directory = directory.ok_or(ConfigError::NoStateDirectory)?;
    Ok(AuditSettings {
        keys: state.unwrap_or_else(|| directory.clone()),
        directory,
        values: document.values,
        redact: document.redact.clone(),
        code: document.code,
        keep_days: document.keep_days,
    })
}

/// Reads the policy, and what is required above it. Without a policy everything is denied, with a hint.
///
/// # Errors
/// [`ConfigError`], with every fault of the file that it is about.
pub(crate) fn load_policy(files: &Files) -> Result<Policy, ConfigError> {
    let own = match find_policy(files) {
        Some(path) => {
            permissions::refuse_if_writable(&path)?;
            Policy::parse(read_source(&path)?)?
        }
        None => Policy::empty(),
    };
    Ok(requirements::policies()?.into_iter().fold(own, Policy::under))
}

/// The policy file that is in force, if there is one.
pub(crate) fn find_policy(files: &Files) -> Option<PathBuf> {
    locate::file(files.policy.as_deref(), "policy.toml")
}

/// The servers of any AI client's file, as they are written; `None` when it lists none.
pub(crate) fn list_servers(path: &Path, surroundings: &Surroundings) -> Result<Option<Listing>, ConfigError> {
    Ok(dialects::read(&read_source(path)?, surroundings)?)
}

/// Whether an AI client's file has an entry for Lockhouse under a name of its user's choice.
pub(crate) fn points_at_us(source: &Source, surroundings: &Surroundings) -> bool {
    let Ok(Some(listing)) = dialects::read(source, surroundings) else { return false };
    let others = listing.servers.into_iter().filter(|listed| listed.name != insertion::NAME);
    others.filter_map(|listed| listed.entry.ok()).any(|entry| {
        let resolved = entry.resolve(surroundings, ServerLimits::default(), String::new());
        resolved == Err(LeftOut::Itself)
    })
}

/// Where tokens are kept, of the configuration alone.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_token_file(files: &Files) -> Result<TokenFile, ConfigError> {
    let surroundings = Surroundings::of_process();
    let (document, path) = load_document(files, &surroundings)?;
    admission::token_file(&document.http, &path, &surroundings).ok_or(ConfigError::NoStateDirectory)
}

/// Where values are kept that are not written down in the configuration.
pub(crate) fn secrets_directory() -> Option<PathBuf> {
    Some(directories::configuration()?.join("secrets"))
}

/// Those of some files with secrets that others can read.
pub(crate) fn readable_by_others<'p>(files: impl Iterator<Item = &'p Path>) -> Vec<ReadableSecret> {
    permissions::readable_secrets(files.map(Path::to_owned))
}

/// The files that references in a text name: `${file:/PATH}`.
fn referenced_files(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("${file:").skip(1);
    after.filter_map(|after| after.split_once('}')).map(|(path, _)| path)
}

/// Where `policy init` writes.
pub(crate) fn policy_path(files: &Files) -> Result<PathBuf, ConfigError> {
    let default = || directories::configuration().map(|directory| directory.join("policy.toml"));
    files.policy.clone().or_else(default).ok_or(ConfigError::NoPolicyDirectory)
}

fn sessions(document: &document::Document) -> SessionSettings {
    let sessions = &document.sessions;
    SessionSettings {
        max: sessions.max as usize,
        of_a_client: document.clients.sessions as usize,
        idle: Duration::from_secs_f64(sessions.idle_seconds),
        life: Duration::from_secs_f64(sessions.life_seconds),
    }
}

fn runs(document: &document::Runs) -> RunSettings {
    RunSettings {
        wait: Duration::from_secs_f64(document.wait_seconds),
        background: document.background as usize,
        background_of_one: document.background_per_client as usize,
    }
}

fn approvals(document: &document::Document) -> ApprovalSettings {
    let wait = document.approvals.wait_seconds.unwrap_or(document.limits.question_seconds);
    ApprovalSettings { through: document.approvals.through, wait: Duration::from_secs_f64(wait) }
}

/// The policy that is in force, if it was named or is the user's, and not everybody's.
fn own_policy(files: &Files) -> Option<PolicyFile> {
    let own = || directories::configuration().map(|directory| directory.join("policy.toml"));
    let path = files.policy.clone().or_else(own)?;
    (find_policy(files).as_ref() == Some(&path)).then(|| PolicyFile::new(path))
}

fn limits(document: &document::Limits) -> ExecutionLimits {
    ExecutionLimits {
        wall: Duration::from_secs_f64(document.timeout_seconds),
        question: Duration::from_secs_f64(document.question_seconds),
        grace: Duration::from_millis(document.grace_ms.into()),
        cpu: Duration::from_secs(document.cpu_seconds.into()),
        // Of the client's, as the run begins.
        cpu_credit: None,
        memory_bytes: u64::from(document.memory_mib) * 1024 * 1024,
        conversation: ConversationLimits {
            calls: document.calls,
            parallel_calls: document.parallel_calls,
            output_bytes: u64::from(document.output_kib) * 1024,
            frame_bytes: document.frame_kib * 1024,
        },
    }
}
