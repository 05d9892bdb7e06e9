//! `lockhouse policy allow`, `ask` and `deny`: change the policy file so that a tool has this effect.

mod report;

use std::path::Path;
use std::process::ExitCode;

use data_encoding::HEXLOWER;
use lockhouse_approvals::PolicyFile;
use lockhouse_base::text_files;
use lockhouse_catalog::Catalogue;
use lockhouse_policies::edit::{self, EditError, EditedPolicy, unified_diff};
use lockhouse_policies::{
    Call, CallTarget, Effect, Explanation, Pattern, PatternKind, Policy, SKILLS, Source, printable,
};
use lockhouse_protocol::{ServerName, ToolName};
use sha2::{Digest as _, Sha256};

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

/// The tools that a command is about.
struct Target {
    server: ServerName,
    pattern: Pattern,
}

/// Changes the policy file so that the tools have the effect `wanted`, and prints the change and what is decided about
/// the tools now. The exit status is 0 even if another part of the policy still decides otherwise about some calls; it
/// is 2 if an entry of `deny` or a rule overrides the change, or if it would match nothing that is known, and then the
/// file is not changed.
pub(super) fn set_effect(files: &Files, arguments: &Arguments, wanted: Effect) -> Result<ExitCode, ExitCode> {
    let target = parse_target(&arguments.tool)?;
    let failed = |error: ConfigError| print_config_error(&error);
    let path = config::editable_policy(files).map_err(failed)?;
    let file = PolicyFile::new(path.clone());
    let mut environment = Environment::load(&Files { policy: Some(path.clone()), ..files.clone() });
    let note = check_names(&mut environment, &target).or_else(|missing| {
        if arguments.unknown { Ok(Some(missing)) } else { Err(refuse_unknown(&path, &missing)) }
    })?;
    let before = read_policy(&file, &path).map_err(failed)?;
    let text = before.as_ref().map(|source| source.text.as_str());
    let edit = edit::set_effect(text, &target.server, &target.pattern, wanted)
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
    let decisions = examine(&mut environment, &policy, &target);
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
        notes: note.into_iter().collect(),
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

/// Reads the policy, which must be valid. `None` if there is no file.
fn read_policy(file: &PolicyFile, path: &Path) -> Result<Option<Source>, ConfigError> {
    if !path.exists() {
        return Ok(None);
    }
    let source = file.read()?;
    Policy::parse(source.clone())?;
    Ok(Some(source))
}

/// Prints that the policy was not changed, since the change would match nothing.
fn refuse_unknown(path: &Path, missing: &str) -> ExitCode {
    let file = printable(&path.display().to_string());
    eprintln!("lockhouse: {file} was not changed: {missing}. --unknown makes the change nevertheless");
    ExitCode::from(USAGE)
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
            let create = |_| directory.map_or(Ok(()), std::fs::create_dir_all);
            let created = text_files::write_target(path).and_then(create);
            created.and_then(|()| text_files::replace(path, &edit.text)).map_err(|error| {
                eprintln!("lockhouse: cannot write {}: {error}", path.display());
                ExitCode::from(UNAVAILABLE)
            })?;
        }
    }
    Ok(())
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
