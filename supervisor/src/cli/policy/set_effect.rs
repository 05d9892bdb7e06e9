//! `lockhouse policy allow`, `ask` and `deny`: change the policy file so that a tool has this effect.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use data_encoding::HEXLOWER;
use lockhouse_approvals::{PolicyFile, PolicyFileError};
use lockhouse_base::text_files;
use lockhouse_catalog::Catalogue;
use lockhouse_policies::edit::{self, EditError, EditedPolicy, Statement, unified_diff};
use lockhouse_policies::{
    Call, CallTarget, Diagnostics, Effect, Explanation, InvalidPattern, Pattern, PatternKind, Policy, SKILLS,
    Source, printable,
};
use lockhouse_protocol::{InvalidName, ServerName, ToolName};
use sha2::{Digest as _, Sha256};

use super::environment::Environment;
use super::explain;
use crate::cli::{DIGEST_IS_STALE, UNAVAILABLE, USAGE, print_config_error, print_error};
use crate::config::{self, ConfigError, Files};
pub(in crate::cli) use report::Report;

/// Options of `lockhouse policy allow`, `ask` and `deny`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// SERVER.TOOL, or SERVER.PREFIX* for all tools whose names begin with the prefix
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
    /// Make the change even if no server, or no tool of it, has this name yet
    #[arg(long)]
    unknown: bool,
    /// Show the change and its effect, without changing the file
    #[arg(long)]
    dry_run: bool,
    /// Change the file only if this is exactly the change that --dry-run --json showed with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "dry_run")]
    digest: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A change of the policy file after which the tools have an effect.
pub(in crate::cli) struct EffectChange<'a> {
    /// SERVER.TOOL, or SERVER.PREFIX* for all tools whose names begin with the prefix.
    pub(in crate::cli) tool: &'a str,
    pub(in crate::cli) wanted: Effect,
    /// Whether to make the change even if it matches nothing that is known.
    pub(in crate::cli) unknown: bool,
    /// Whether to leave the file as it is.
    pub(in crate::cli) dry_run: bool,
    /// The digest of the only change that is made; `None` for any.
    pub(in crate::cli) digest: Option<&'a str>,
}

/// The tools that a command is about.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Target {
    server: ServerName,
    pattern: Pattern,
}

/// Why the policy file was not changed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SetEffectError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0:?} does not have the form SERVER.TOOL or SERVER.PREFIX*")]
    Form(String),
    #[error(transparent)]
    Server(#[from] InvalidName),
    #[error("{name:?} does not name a tool: {invalid}; {}", .invalid.help())]
    Pattern { name: String, invalid: InvalidPattern },
    #[error("{file} was not changed: {missing}. --unknown makes the change nevertheless")]
    Unknown { file: String, missing: String },
    #[error(
        "{file} was not changed: {}, at {file}:{}, covers {target} and overrides an entry in `{wanted}`. Remove it, or narrow \
         its pattern", .statement.describe(), .statement.line
    )]
    Overridden { file: String, statement: Box<Statement>, target: Target, wanted: Effect },
    #[error(
        "{file} was not changed: [servers.{}] has a form that only a person can edit. Add \"{}\" to its list `{wanted}`",
        .target.server, .target.pattern
    )]
    Unsupported { file: String, target: Target, wanted: Effect },
    #[error(
        "{file} was not changed, since the result would not be valid. The lines below are those of the result:\n{faults}"
    )]
    Invalid { file: String, faults: Diagnostics },
    #[error("{0} was not changed: the policy or the change of it {DIGEST_IS_STALE}")]
    Stale(String),
    #[error(transparent)]
    NotReplaced(#[from] PolicyFileError),
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
}

impl SetEffectError {
    /// Whether the policy is not what was shown, or cannot be written. Any other error is a fault of the change.
    pub(in crate::cli) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Stale(_) | Self::NotReplaced(_) | Self::Unwritable { .. })
    }

    fn print(&self) -> ExitCode {
        match self {
            Self::Config(error) => print_config_error(error),
            _ => print_error(self, if self.is_unavailable() { UNAVAILABLE } else { USAGE }),
        }
    }
}

/// Changes the policy file so that the tools have the effect `wanted`, and prints the change and what is decided about
/// the tools now. The exit status is 0 even if another part of the policy still decides otherwise about some calls; it
/// is 2 if an entry of `deny` or a rule overrides the change, or if it would match nothing that is known, and then the
/// file is not changed.
pub(super) fn set_effect(files: &Files, arguments: &Arguments, wanted: Effect) -> Result<ExitCode, ExitCode> {
    let Arguments { tool, unknown, dry_run, digest, json } = arguments;
    let (unknown, dry_run, digest) = (*unknown, *dry_run, digest.as_deref());
    let change = EffectChange { tool, wanted, unknown, dry_run, digest };
    let report = change.make(files).map_err(|error| error.print())?;
    if *json {
        report.print_json()
    } else {
        report.print()
    }
    Ok(ExitCode::SUCCESS)
}

impl EffectChange<'_> {
    /// Changes the policy file, unless the change is a dry run.
    ///
    /// # Errors
    /// [`SetEffectError`]: the file was not changed.
    pub(in crate::cli) fn make(&self, files: &Files) -> Result<Report, SetEffectError> {
        let (target, wanted) = (parse_target(self.tool)?, self.wanted);
        let path = config::editable_policy(files)?;
        let shown_path = || printable(&path.display().to_string());
        let file = PolicyFile::new(path.clone());
        let mut environment = Environment::load(&Files { policy: Some(path.clone()), ..files.clone() });
        let note = match check_names(&mut environment, &target) {
            Ok(note) => note,
            Err(missing) if self.unknown => Some(missing),
            Err(missing) => return Err(SetEffectError::Unknown { file: shown_path(), missing }),
        };
        let before = read_policy(&file, &path)?;
        let text = before.as_ref().map(|source| source.text.as_str());
        let edit = edit::set_effect(text, &target.server, &target.pattern, wanted).map_err(|error| {
            let (file, target) = (shown_path(), target.clone());
            match error {
                EditError::Overridden(statement) => {
                    SetEffectError::Overridden { file, statement: Box::new(statement), target, wanted }
                }
                EditError::Unsupported => SetEffectError::Unsupported { file, target, wanted },
            }
        })?;
        let after = Source { path: path.display().to_string(), text: edit.text.clone() };
        let own =
            Policy::parse(after).map_err(|faults| SetEffectError::Invalid { file: shown_path(), faults })?;
        let policy = config::restrict_by_requirements(own)?;
        let decisions = examine(&mut environment, &policy, &target);
        let changed = text != Some(edit.text.as_str());
        let digest = change_digest(&path, text, &edit.text);
        if self.digest.is_some_and(|shown| shown != digest) {
            return Err(SetEffectError::Stale(shown_path()));
        }
        if changed && !self.dry_run {
            write(&file, &path, text, &edit)?;
        }
        let diff = match changed {
            true => unified_diff(&path.display().to_string(), text.unwrap_or_default(), &edit.text),
            false => String::new(),
        };
        let (dry_run, notes) = (self.dry_run, note.into_iter().collect());
        Ok(Report { path, target, wanted, changed, dry_run, diff, digest, edit, decisions, notes })
    }
}

/// Returns the digest of a change: `sha256:` and the hexadecimal SHA-256 of the path and of both texts, each with its
/// length.
fn change_digest(path: &Path, before: Option<&str>, after: &str) -> String {
    let mut hash = Sha256::new();
    let presence = if before.is_some() { "file" } else { "no file" };
    for part in [
        path.as_os_str().as_encoded_bytes(),
        presence.as_bytes(),
        before.unwrap_or_default().as_bytes(),
        after.as_bytes(),
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("sha256:{}", HEXLOWER.encode(&hash.finalize()))
}

fn parse_target(name: &str) -> Result<Target, SetEffectError> {
    let parts = name.split_once(['.', '/']);
    let (server, pattern) = parts.ok_or_else(|| SetEffectError::Form(name.to_owned()))?;
    let server = ServerName::new(server)?;
    let pattern = Pattern::parse(PatternKind::Tools, pattern)
        .map_err(|invalid| SetEffectError::Pattern { name: name.to_owned(), invalid })?;
    Ok(Target { server, pattern })
}

/// Reads the policy, which must be valid. `None` if there is no file.
fn read_policy(file: &PolicyFile, path: &Path) -> Result<Option<Source>, ConfigError> {
    if !path.exists() {
        return Ok(None);
    }
    let source = file.read()?;
    Policy::parse(source.clone())?;
    Ok(Some(source))
}

/// Writes the edited policy, or creates it. Fails if the file has changed since it was read.
fn write(
    file: &PolicyFile,
    path: &Path,
    before: Option<&str>,
    edit: &EditedPolicy,
) -> Result<(), SetEffectError> {
    let Some(before) = before else {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let create = |_| directory.map_or(Ok(()), std::fs::create_dir_all);
        let created = text_files::write_target(path).and_then(create);
        let written = created.and_then(|()| text_files::replace(path, &edit.text));
        return written.map_err(|source| SetEffectError::Unwritable { path: path.to_owned(), source });
    };
    Ok(file.replace(before, &edit.text)?)
}

/// Returns the decisions of the policy about calls without arguments: of the tool, or of the known tools that match
/// the prefix.
fn examine(environment: &mut Environment, policy: &Policy, target: &Target) -> Vec<Explanation> {
    let Target { server, pattern } = target;
    let tools = match ToolName::new(pattern.to_string()) {
        Ok(tool) => vec![tool],
        Err(_) => environment.catalogue(server).map_or_else(Vec::new, |known| matching_tools(known, pattern)),
    };
    let explain = |tool| {
        let call = environment.complete(policy, Call::new(server, CallTarget::Tool(tool)));
        lockhouse_policies::explain(policy, &call)
    };
    tools.into_iter().map(explain).collect()
}

/// Checks that an entry for the target matches something. Returns a note if that is not known yet. `Err` says that there
/// is no such server, or that none of its tools matches.
fn check_names(environment: &mut Environment, target: &Target) -> Result<Option<String>, String> {
    let Target { server, pattern } = target;
    if server.as_str() == SKILLS {
        return Ok(None);
    }
    if let Some(missing) = explain::missing_server(environment, server) {
        return Err(missing);
    }
    let Some(catalogue) = environment.catalogue(server) else {
        return Ok(Some(format!(
            "the tools of {server} are not known yet, so `{pattern}` may match nothing: run `lockhouse server test {server}` to connect to it"
        )));
    };
    // An entry for all tools also applies to those that the server has later.
    if pattern.to_string() == "*" || !matching_tools(catalogue, pattern).is_empty() {
        return Ok(None);
    }
    Err(match ToolName::new(pattern.to_string()) {
        Ok(tool) => explain::missing_tool(catalogue, server, &tool),
        Err(_) => format!("{server} had no tool that matches `{pattern}` when it was last connected"),
    })
}

fn matching_tools(catalogue: &Catalogue, pattern: &Pattern) -> Vec<ToolName> {
    let names = catalogue.tools.iter().map(|tool| tool.name.clone());
    names.filter(|tool| pattern.permits(&CallTarget::Tool(tool.clone()))).collect()
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.server, self.pattern)
    }
}
