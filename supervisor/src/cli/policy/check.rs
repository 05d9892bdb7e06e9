//! `lockhouse policy check`: reports all errors of a policy at once, as text or JSON.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_catalog::unmatched_rules;
use lockhouse_config::{self as config, ConfigError, Files, Settings};
use lockhouse_policies::{Diagnostic, Diagnostics, Policy, SKILLS, printable};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::cached_tools;
use serde_json::{Value, json};

use crate::cli::USAGE;
use crate::cli::terminal::{for_stdout, has_colour};

/// Options of `lockhouse policy check`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The policy file to check [default: the active policy]
    file: Option<PathBuf>,
    /// How errors are printed
    #[arg(long, value_enum, default_value_t = Format::Full, conflicts_with = "json")]
    format: Format,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Format {
    /// Each error with its source line, a caret and a hint
    Full,
    /// One line for each error: FILE:LINE:COLUMN: error: ...
    Short,
}

/// The result of `lockhouse policy check`.
struct CheckReport {
    files: Vec<PathBuf>,
    faults: Vec<ConfigError>,
    servers: Vec<ServerName>,
    not_in_policy: Vec<ServerName>,
    not_configured: Vec<ServerName>,
    /// Warnings about names in the policy that match no tool of a configured server, or no parameter of its tools.
    warnings: Diagnostics,
    /// Servers in the policy whose tools are unknown, because Lockhouse has not connected to them yet.
    tools_not_known: Vec<ServerName>,
}

/// Runs `lockhouse policy check`. The exit status is 0 if the policy is valid, and 2 if it is invalid or missing.
/// Warnings do not change the exit status.
pub(super) fn check(files: &Files, arguments: Arguments) -> ExitCode {
    let mut files = files.clone();
    files.policy = arguments.file.or(files.policy);
    let Some(path) = config::find_policy(&files) else {
        let words = "there is no policy, so every call is denied; generate one with `lockhouse policy init`";
        if arguments.json {
            let error = json!({"message": words});
            println!("{:#}", json!({"valid": false, "files": [], "errors": [error]}));
        } else {
            eprintln!("lockhouse: {words}");
        }
        return ExitCode::from(USAGE);
    };
    let report = CheckReport::new(&files, path);
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", report.to_json())));
    } else {
        report.print(arguments.format);
    }
    if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

impl CheckReport {
    fn new(files: &Files, path: PathBuf) -> Self {
        let (policy, settings) = (config::load_policy(files), Settings::load(files));
        let (mut not_in_policy, mut not_configured, mut servers) = (Vec::new(), Vec::new(), Vec::new());
        let mut report = vec![path];
        if let Ok(policy) = &policy {
            servers = policy.servers().cloned().collect();
            // The administrator's required policies that apply in addition.
            report.extend(policy.files().skip(1).map(PathBuf::from));
        }
        if let (Ok(_), Ok(settings)) = (&policy, &settings) {
            let configured = &settings.engine.servers;
            not_in_policy = configured.keys().filter(|name| !servers.contains(name)).cloned().collect();
            not_configured = servers
                .iter()
                .filter(|name| !configured.contains_key(name) && !is_built_in(&settings.engine, name))
                .cloned()
                .collect();
        }
        let (mut warnings, mut tools_not_known) = (Diagnostics(Vec::new()), Vec::new());
        if let (Ok(policy), Ok(settings)) = (&policy, &settings) {
            (warnings, tools_not_known) = compare(settings, policy);
        }
        let faults = policy.err().into_iter().chain(settings.err()).collect();
        Self { files: report, faults, servers, not_in_policy, not_configured, warnings, tools_not_known }
    }

    fn print(&self, format: Format) {
        for fault in &self.faults {
            print_fault(fault, format);
        }
        if !self.faults.is_empty() {
            return;
        }
        print_diagnostics(&self.warnings, format);
        let count = self.servers.len();
        let (own, above) =
            self.files.split_first().map_or((None, &[][..]), |(own, above)| (Some(own), above));
        println!(
            "{} is valid and covers {count} server{}",
            own.map(|path| display_path(path)).unwrap_or_default(),
            if count == 1 { "" } else { "s" }
        );
        for path in above {
            println!("its permissions are restricted by {}, which is also valid", display_path(path));
        }
        for server in &self.not_in_policy {
            println!("server {server} is configured but not in the policy: every call to it is denied");
        }
        for server in &self.not_configured {
            println!("server {server} is in the policy but not configured");
        }
        for server in &self.tools_not_known {
            println!(
                "the tools of server {server} are not known yet, so the policy's rules for them were not checked: run \
                 `lockhouse server test {server}` to connect to it"
            );
        }
    }

    fn to_json(&self) -> Value {
        let names = |names: &[ServerName]| names.iter().map(ServerName::as_str).collect::<Value>();
        let files: Value = self.files.iter().map(|path| path.display().to_string()).collect();
        json!({
            "valid": self.faults.is_empty(), "files": files,
            "errors": self.faults.iter().flat_map(faults_to_json).collect::<Value>(),
            "servers": names(&self.servers), "not_in_policy": names(&self.not_in_policy),
            "not_configured": names(&self.not_configured),
            "warnings": diagnostics_to_json(&self.warnings), "tools_not_known": names(&self.tools_not_known),
        })
    }
}

/// Compares the policy with the last known tools of the configured servers, without starting any server. Returns
/// warnings about names in the policy that match no tool or parameter, and the servers whose tools are unknown.
fn compare(settings: &Settings, policy: &Policy) -> (Diagnostics, Vec<ServerName>) {
    let (mut warnings, mut not_known) = (Vec::new(), Vec::new());
    for server in policy.servers() {
        let Some(definition) = settings.engine.servers.get(server) else { continue };
        match cached_tools(server, definition, &settings.engine.places) {
            Some(catalogue) => warnings.extend(unmatched_rules(policy, server, &catalogue).0),
            None => not_known.push(server.clone()),
        }
    }
    (Diagnostics(warnings), not_known)
}

pub(in crate::cli) fn print_fault(fault: &ConfigError, format: Format) {
    match fault {
        ConfigError::Faults(faults) => print_diagnostics(faults, format),
        other => eprintln!("lockhouse: {other}"),
    }
}

/// Prints diagnostics about a file to standard error. `format` selects how each is printed: on several lines with an
/// excerpt of the file ([`Format::Full`]), or on one line, as compilers write it ([`Format::Short`]).
fn print_diagnostics(faults: &Diagnostics, format: Format) {
    match format {
        Format::Short => faults.0.iter().for_each(|fault| eprintln!("{}", fault.to_single_line())),
        Format::Full if faults.0.is_empty() => {}
        Format::Full => {
            eprintln!("{}", faults.render(has_colour()));
        }
    }
}

pub(in crate::cli) fn faults_to_json(fault: &ConfigError) -> Vec<Value> {
    match fault {
        ConfigError::Faults(faults) => diagnostics_to_json(faults),
        other => vec![json!({"message": other.to_string()})],
    }
}

fn diagnostics_to_json(faults: &Diagnostics) -> Vec<Value> {
    let one = |fault: &Diagnostic| {
        json!({
            "file": fault.path(), "line": fault.line(), "column": fault.column(),
            "message": fault.title(), "label": fault.label(), "help": fault.help(),
        })
    };
    faults.0.iter().map(one).collect()
}

fn display_path(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Whether this is the name of one of Lockhouse's own servers.
fn is_built_in(settings: &lockhouse_engine::supervisor::EngineSettings, name: &ServerName) -> bool {
    name.as_str() == SKILLS || settings.host_files.is_on() && settings.host_files.name == *name
}
