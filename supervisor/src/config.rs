//! The configuration: files people write, checked whole, turned into the settings that each part takes.

mod admission;
mod clients;
mod dialects;
mod document;
mod edit;
mod entry;
mod env_file;
mod error;
mod excerpts;
mod faults;
mod generated;
mod http;
mod insertion;
mod keys;
mod left_out;
mod locate;
mod oauth;
mod own_table;
mod partial;
mod parts;
mod permissions;
mod plaintext;
mod pools;
mod references;
mod requirements;
mod roster;
mod server_keys;
mod servers;
mod tables;
mod unused;
mod written;

use std::path::{Path, PathBuf};

use lockhouse_audit as audit;
use lockhouse_audit::{AuditSettings, digest};
use lockhouse_base::directories;
use lockhouse_base::telemetry::log;
use lockhouse_base::text_files::read_source;
use lockhouse_engine::supervisor;
use lockhouse_front::access::TokenFile;
use lockhouse_front::http::{Address, HttpSettings};
use lockhouse_gate::skills::SkillSettings;
use lockhouse_gate::{PolicyFile, results};
use lockhouse_policies::{Policy, Source};
use lockhouse_upstream::ServerLimits;

use requirements::Requirements;

pub(crate) use clients::{Client, project_files};
pub(crate) use dialects::{Listed, Listing};
pub(crate) use edit::Edit;
pub(crate) use entry::Entry;
pub(crate) use error::ConfigError;
pub(crate) use generated::{json_schema, packaged_configuration};
pub(crate) use insertion::{Insertion, StartEntry, insert};
pub(crate) use left_out::LeftOut;
pub(crate) use own_table::own_table;
pub(crate) use permissions::ReadableSecret;
pub(crate) use plaintext::{keep, looks_secret, with_references};
pub(crate) use references::{Surroundings, Unresolved};
pub(crate) use roster::usable;
pub(crate) use unused::Unused;
pub(crate) use written::Written;

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
            servers,
            own_policy: own_policy(files),
            refused: refused.iter().map(ToString::to_string).collect(),
            digest: digest::of_files(&digests),
            ..parts::engine(&document, &path, &surroundings)?
        };
        let access = admission::settings(&document, &path, &surroundings)?;
        let http = document.http.settings(access, document.limits.code_kib, &path, &surroundings);
        let metrics = document.metrics.listen.clone();
        Ok(Self { engine, unused, http, metrics, document, path })
    }

    /// Files with secrets that others can read: keys, tokens, and what the configuration refers to.
    pub(crate) fn readable_secrets(&self) -> Vec<ReadableSecret> {
        let surroundings = Surroundings::of_process();
        let kept = secrets_directory().into_iter().flat_map(|directory| permissions::files_in(&directory));
        let keys = audit::key_files(&self.engine.audit.keys);
        let tokens = admission::token_file(&self.document.http, &self.path, &surroundings);
        let tokens = tokens.map(|tokens| tokens.path().to_owned());
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let referenced = self.document.referenced_files.iter();
        let referenced = referenced.map(|path| beside.join(surroundings.expand_home(path)));
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
    parts::audit_settings(&load_document(files, &Surroundings::of_process())?.0.audit)
}

/// What is kept of results, and how much of one is shown, of the configuration alone.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_result_bounds(files: &Files) -> Result<(results::Bounds, usize), ConfigError> {
    let (document, _) = load_document(files, &Surroundings::of_process())?;
    Ok((parts::result_bounds(&document.results), parts::display(&document.limits).part_bytes))
}

/// What is configured of skills, of the configuration alone.
///
/// # Errors
/// [`ConfigError`], with every fault of the file.
pub(crate) fn load_skill_settings(files: &Files) -> Result<SkillSettings, ConfigError> {
    let surroundings = Surroundings::of_process();
    let (document, path) = load_document(files, &surroundings)?;
    Ok(parts::skills(&document.skills, &path, &surroundings))
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

/// Where `policy init` writes.
pub(crate) fn policy_path(files: &Files) -> Result<PathBuf, ConfigError> {
    let default = || directories::configuration().map(|directory| directory.join("policy.toml"));
    files.policy.clone().or_else(default).ok_or(ConfigError::NoPolicyDirectory)
}

/// The policy that is in force, if it was named or is the user's, and not everybody's.
fn own_policy(files: &Files) -> Option<PolicyFile> {
    let own = || directories::configuration().map(|directory| directory.join("policy.toml"));
    let path = files.policy.clone().or_else(own)?;
    (find_policy(files).as_ref() == Some(&path)).then(|| PolicyFile::new(path))
}
