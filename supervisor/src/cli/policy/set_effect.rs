//! `lockhouse policy allow`, `ask` and `deny`: change the policy file so that a tool has this effect.

mod report;

use std::path::Path;
use std::process::ExitCode;

use data_encoding::HEXLOWER;
use lockhouse_base::text_files;
use lockhouse_gate::PolicyFile;
use lockhouse_gate::policy_text::unified_diff;
use lockhouse_policies::{
    Call, CallTarget, Effect, Explanation, Pattern, PatternKind, Policy, Source, printable,
};
use lockhouse_protocol::{ServerName, ToolName};
use sha2::{Digest as _, Sha256};

use super::effect_edit::{self, EditError, EditedPolicy};
use super::environment::Environment;
use super::explain;
use crate::cli::{DIGEST_IS_STALE, UNAVAILABLE, USAGE, print_config_error, print_error};
use crate::config::{self, ConfigError, Files};
use report::Report;

/// Options of `lockhouse policy allow`, `ask` and `deny`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// SERVER.TOOL, or SERVER.PREFIX* for all tools whose names begin with the prefix
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
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

/// The tools that a command is about.
struct Target {
    server: ServerName,
    pattern: Pattern,
}

/// Changes the policy file so that the tools have the effect `wanted`, and prints the change and what is decided about
/// the tools now. The exit status is 0 even if another part of the policy still decides otherwise about some calls; it
/// is 2 if an entry of `deny` or a rule overrides the change, and then the file is not changed.
pub(super) fn set_effect(files: &Files, arguments: &Arguments, wanted: Effect) -> Result<ExitCode, ExitCode> {
    let target = parse_target(&arguments.tool)?;
    let failed = |error: ConfigError| print_config_error(&error);
    let path = config::editable_policy(files).map_err(failed)?;
    let file = PolicyFile::new(path.clone());
    let before = match path.exists() {
        true => Some(file.read().map_err(|error| failed(error.into()))?),
        false => None,
    };
    if let Some(source) = &before {
        Policy::parse(source.clone()).map_err(|faults| failed(faults.into()))?;
    }
    let text = before.as_ref().map(|source| source.text.as_str());
    let edit = effect_edit::set_effect(text, &target.server, &target.pattern, wanted)
        .map_err(|error| refuse(&path, &target, wanted, &error))?;
    let after = Source { path: path.display().to_string(), text: edit.text.clone() };
    let own = Policy::parse(after).map_err(|faults| {
        eprintln!(
            "lockhouse: {} was not changed, since the result would not be valid. The lines below are those of the result:",
            printable(&path.display().to_string())
        );
        failed(faults.into())
    })?;
    let policy = config::restrict_by_requirements(own).map_err(failed)?;
    let mut environment = Environment::load(&Files { policy: Some(path.clone()), ..files.clone() });
    let (decisions, notes) = examine(&mut environment, &policy, &target);
    let changed = text != Some(edit.text.as_str());
    let digest = change_digest(&path, text, &edit.text);
    if arguments.digest.as_ref().is_some_and(|shown| *shown != digest) {
        eprintln!(
            "lockhouse: {} was not changed: the policy or the change of it {DIGEST_IS_STALE}",
            printable(&path.display().to_string())
        );
        return Err(ExitCode::from(UNAVAILABLE));
    }
    if changed && !arguments.dry_run {
        write(&file, &path, text, &edit)?;
    }
    let diff = match changed {
        true => unified_diff(&path.display().to_string(), text.unwrap_or_default(), &edit.text),
        false => String::new(),
    };
    let report = Report {
        path,
        target,
        wanted,
        changed,
        dry_run: arguments.dry_run,
        diff,
        digest,
        edit,
        decisions,
        notes,
    };
    if arguments.json {
        report.print_json()
    } else {
        report.print()
    }
    Ok(ExitCode::SUCCESS)
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

fn parse_target(name: &str) -> Result<Target, ExitCode> {
    let Some((server, pattern)) = name.split_once(['.', '/']) else {
        eprintln!("lockhouse: {name:?} does not have the form SERVER.TOOL or SERVER.PREFIX*");
        return Err(ExitCode::from(USAGE));
    };
    let server = ServerName::new(server).map_err(|invalid| print_error(&invalid, USAGE))?;
    let pattern = Pattern::parse(PatternKind::Tools, pattern).map_err(|invalid| {
        eprintln!("lockhouse: {name:?} does not name a tool: {invalid}; {}", invalid.help());
        ExitCode::from(USAGE)
    })?;
    Ok(Target { server, pattern })
}

/// Prints why the policy was not changed.
fn refuse(path: &Path, target: &Target, wanted: Effect, error: &EditError) -> ExitCode {
    let file = printable(&path.display().to_string());
    match error {
        EditError::Overridden(statement) => eprintln!(
            "lockhouse: {file} was not changed: {}, at {file}:{}, covers {target} and overrides an entry in `{wanted}`. \
             Remove it, or narrow its pattern",
            statement.describe(),
            statement.line
        ),
        EditError::Unsupported => eprintln!(
            "lockhouse: {file} was not changed: [servers.{}] has a form that only a person can edit. Add \"{}\" to its \
             list `{wanted}`",
            target.server, target.pattern
        ),
    }
    ExitCode::from(USAGE)
}

/// Writes the edited policy, or creates it. Fails if the file has changed since it was read.
fn write(file: &PolicyFile, path: &Path, before: Option<&str>, edit: &EditedPolicy) -> Result<(), ExitCode> {
    match before {
        Some(before) => {
            file.replace(before, &edit.text).map_err(|error| print_error(&error, UNAVAILABLE))?;
        }
        None => {
            let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
            let created = directory.map_or(Ok(()), std::fs::create_dir_all);
            let written = text_files::write_target(path).and(created);
            written.and_then(|()| text_files::replace(path, &edit.text)).map_err(|error| {
                eprintln!("lockhouse: cannot write {}: {error}", path.display());
                ExitCode::from(UNAVAILABLE)
            })?;
        }
    }
    Ok(())
}

/// Returns the decisions of the policy about calls without arguments: of the tool, or of the known tools that match
/// the prefix. Also returns notes about names that are not known to exist.
fn examine(
    environment: &mut Environment,
    policy: &Policy,
    target: &Target,
) -> (Vec<Explanation>, Vec<String>) {
    let Target { server, pattern } = target;
    let explain = |environment: &mut Environment, tool: ToolName| {
        let call = environment.complete(policy, Call::new(server, CallTarget::Tool(tool)));
        (lockhouse_policies::explain(policy, &call), call)
    };
    if let Ok(tool) = ToolName::new(pattern.to_string()) {
        let (explanation, call) = explain(environment, tool);
        return (vec![explanation], explain::notes(environment, &call));
    }
    if !environment.servers().any(|name| name == server) {
        return (Vec::new(), vec![format!("no server {server} is configured")]);
    }
    let Some(catalogue) = environment.catalogue(server) else {
        let note = format!(
            "the tools of {server} are not known yet: run `lockhouse server test {server}` to connect to it"
        );
        return (Vec::new(), vec![note]);
    };
    let names = catalogue.tools.iter().map(|tool| tool.name.clone());
    let tools: Vec<ToolName> =
        names.filter(|tool| pattern.permits(&CallTarget::Tool(tool.clone()))).collect();
    let notes = match tools.is_empty() {
        true => vec![format!("{server} had no tool that matches `{pattern}` when it was last connected")],
        false => Vec::new(),
    };
    (tools.into_iter().map(|tool| explain(environment, tool).0).collect(), notes)
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.server, self.pattern)
    }
}
