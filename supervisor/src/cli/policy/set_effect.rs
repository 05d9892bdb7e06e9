//! `lockhouse policy allow`, `ask` and `deny`: change the policy file so that a tool has this effect.

mod report;

use std::path::Path;
use std::process::ExitCode;

use data_encoding::HEXLOWER;
use lockhouse_approvals::PolicyFile;
use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_catalog::Catalogue;
use lockhouse_policies::edit::{self, EditError, EditedPolicy, unified_diff};
use lockhouse_policies::{
    Call, CallTarget, Effect, Explanation, Pattern, PatternKind, Policy, SKILLS, Source, printable,
};
use lockhouse_protocol::{ServerName, ToolName};
use sha2::{Digest as _, Sha256};

use super::environment::Environment;
use super::explain;
use crate::cli::DIGEST_IS_STALE;
use crate::cli::command_audit_log::FileChange;
use crate::cli::command_error::CommandError;
use lockhouse_config::{self as config, ConfigError, Files};
pub(in crate::cli) use report::Report;

/// Options of `lockhouse policy allow`, `ask` and `deny`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    change: EffectChange,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A change of the policy file after which tools have an effect.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EffectChange {
    /// SERVER.TOOL, or SERVER.PREFIX* for all tools whose names begin with the prefix
    #[arg(value_name = "SERVER.TOOL")]
    pub(in crate::cli) tool: String,
    /// Make the change even if no server, or no tool of it, has this name yet
    #[arg(long)]
    pub(in crate::cli) unknown: bool,
    /// Show the change and its effect, without changing the file
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Change the file only if this is exactly the change that --dry-run --json showed with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "dry_run")]
    pub(in crate::cli) digest: Option<String>,
}

/// The tools that a command is about.
pub(in crate::cli) struct Target {
    server: ServerName,
    pattern: Pattern,
}

/// Changes the policy file so that the tools have the effect `wanted`, and prints the change and what is decided about
/// the tools now. The exit status is 0 even if another part of the policy still decides otherwise about some calls; it
/// is 2 if an entry of `deny` or a rule overrides the change, or if it would match nothing that is known, and then the
/// file is not changed.
pub(super) fn set_effect(files: &Files, arguments: &Arguments, wanted: Effect) -> Result<ExitCode, ExitCode> {
    let report = arguments.change.make(files, wanted, Channel::Command).map_err(|error| error.print())?;
    if arguments.json {
        report.print_json()
    } else {
        report.print()
    }
    Ok(ExitCode::SUCCESS)
}

impl EffectChange {
    /// Changes the policy file, unless the change is a dry run. `through` is the way of the change in the audit log.
    ///
    /// # Errors
    /// Why the file was not changed.
    pub(in crate::cli) fn make(
        &self,
        files: &Files,
        wanted: Effect,
        through: Channel,
    ) -> Result<Report, CommandError> {
        let target = parse_target(&self.tool)?;
        let path = config::editable_policy(files)?;
        let refused = |reason: String| {
            CommandError::usage(format!("{} was not changed{reason}", printable(&path.display().to_string())))
        };
        let file = PolicyFile::new(path.clone());
        let mut environment = Environment::load(&Files { policy: Some(path.clone()), ..files.clone() });
        let note =
            check_names(&mut environment, &target).or_else(|UnknownName(missing)| match self.unknown {
                true => Ok(Some(missing)),
                false => Err(refused(format!(": {missing}. --unknown makes the change nevertheless"))),
            })?;
        let before = read_policy(&file, &path)?;
        let text = before.as_ref().map(|source| source.text.as_str());
        let edit = edit::set_effect(text, &target.server, &target.pattern, wanted)
            .map_err(|error| refused(describe(&error, &path, &target, wanted)))?;
        let after = Source { path: path.display().to_string(), text: edit.text.clone() };
        let own = Policy::parse(after).map_err(|faults| {
            refused(format!(
                ", since the result would not be valid. The lines below are those of the result:\n{faults}"
            ))
        })?;
        let policy = config::restrict_by_requirements(own)?;
        let decisions = examine(&mut environment, &policy, &target);
        let changed = text != Some(edit.text.as_str());
        let digest = change_digest(&path, text, &edit.text);
        if self.digest.as_ref().is_some_and(|shown| *shown != digest) {
            let file = printable(&path.display().to_string());
            return Err(CommandError::Stale(format!(
                "{file} was not changed: the policy or the change of it {DIGEST_IS_STALE}"
            )));
        }
        if changed && !self.dry_run {
            let change = FileChange {
                target: ChangeTarget::Policy,
                path: path.clone(),
                action: &format!("{} {target}", wanted.as_str()),
                through,
                text: Some(&edit.text),
                only_restricts: wanted == Effect::Deny,
            };
            let written = change.make(files, || write(&file, &path, text, &edit));
            written.map_err(CommandError::from_change)?;
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

fn parse_target(name: &str) -> Result<Target, CommandError> {
    let form =
        || CommandError::usage(format!("{name:?} does not have the form SERVER.TOOL or SERVER.PREFIX*"));
    let (server, pattern) = name.split_once(['.', '/']).ok_or_else(form)?;
    let server = ServerName::new(server).map_err(CommandError::usage)?;
    let pattern = Pattern::parse(PatternKind::Tools, pattern).map_err(|invalid| {
        CommandError::usage(format!("{name:?} does not name a tool: {invalid}; {}", invalid.help()))
    })?;
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

/// Describes why the text of the policy was not edited.
fn describe(error: &EditError, path: &Path, target: &Target, wanted: Effect) -> String {
    match error {
        EditError::Overridden(statement) => format!(
            ": {}, at {}:{}, covers {target} and overrides an entry in `{wanted}`. Remove it, or narrow its pattern",
            statement.describe(),
            printable(&path.display().to_string()),
            statement.line
        ),
        EditError::Unsupported => format!(
            ": [servers.{}] has a form that only a person can edit. Add \"{}\" to its list `{wanted}`",
            target.server, target.pattern
        ),
    }
}

/// Writes the edited policy, or creates it. Fails if the file has changed since it was read.
fn write(
    file: &PolicyFile,
    path: &Path,
    before: Option<&str>,
    edit: &EditedPolicy,
) -> Result<(), CommandError> {
    let Some(before) = before else {
        return lockhouse_config::write_policy(path, &edit.text, false)
            .map_err(|error| CommandError::unavailable(format!("cannot write {}: {error}", path.display())));
    };
    file.replace(before, &edit.text).map_err(CommandError::unavailable)
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

/// There is no such server, or none of its tools matches.
struct UnknownName(String);

/// Checks that an entry for the target matches something. Returns a note if that is not known yet.
fn check_names(environment: &mut Environment, target: &Target) -> Result<Option<String>, UnknownName> {
    let Target { server, pattern } = target;
    if server.as_str() == SKILLS {
        return Ok(None);
    }
    if let Some(missing) = explain::missing_server(environment, server) {
        return Err(UnknownName(missing));
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
    Err(UnknownName(match ToolName::new(pattern.to_string()) {
        Ok(tool) => explain::missing_tool(catalogue, server, &tool),
        Err(_) => format!("{server} had no tool that matches `{pattern}` when it was last connected"),
    }))
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
