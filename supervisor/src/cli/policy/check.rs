//! `lockhouse policy check`: every fault of a policy at once, for people, for editors and for programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_catalog::unmatched;
use lockhouse_policies::{Diagnostic, Diagnostics, Policy, SKILLS, printable};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::remembered;
use serde_json::{Value, json};

use crate::cli::USAGE;
use crate::cli::terminal::{for_stdout, shows_colour};
use crate::config::{self, ConfigError, Files, Settings};

/// Which policy, and how to tell what is wrong with it.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// A policy that is not in force [default: the one that is]
    file: Option<PathBuf>,
    /// How faults are told
    #[arg(long, value_enum, default_value_t = Format::Full, conflicts_with = "json")]
    format: Format,
    /// Tell everything as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Format {
    /// With the line, a caret and what to do
    Full,
    /// One line for each: FILE:LINE:COLUMN: error: ...
    Short,
}

/// What a check came to.
struct Checked {
    files: Vec<PathBuf>,
    faults: Vec<ConfigError>,
    servers: Vec<ServerName>,
    not_in_policy: Vec<ServerName>,
    not_configured: Vec<ServerName>,
    /// Names that fit nothing which a server has.
    warnings: Diagnostics,
    /// Servers of the policy that were never connected.
    tools_not_known: Vec<ServerName>,
}

/// Checks it: 0 for a policy without a fault, 2 for any other and for none. Warnings do not count as faults.
pub(super) fn check(files: &Files, arguments: Arguments) -> ExitCode {
    let mut files = files.clone();
    files.policy = arguments.file.or(files.policy);
    let Some(path) = config::find_policy(&files) else {
        let words = "there is no policy, so every call is denied; write one with `lockhouse policy init`";
        if arguments.json {
            let error = json!({"message": words});
            println!("{:#}", json!({"valid": false, "files": [], "errors": [error]}));
        } else {
            eprintln!("lockhouse: {words}");
        }
        return ExitCode::from(USAGE);
    };
    let checked = Checked::of(&files, path);
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", checked.to_json())));
    } else {
        checked.tell(arguments.format);
    }
    if checked.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

impl Checked {
    fn of(files: &Files, path: PathBuf) -> Self {
        let (policy, settings) = (config::load_policy(files), Settings::load(files));
        let (mut not_in_policy, mut not_configured, mut servers) = (Vec::new(), Vec::new(), Vec::new());
        let mut checked = vec![path];
        if let Ok(policy) = &policy {
            servers = policy.servers().cloned().collect();
            // The policies that are required above it.
            checked.extend(policy.files().skip(1).map(PathBuf::from));
        }
        if let (Ok(_), Ok(settings)) = (&policy, &settings) {
            let configured = &settings.engine.servers;
            not_in_policy = configured.keys().filter(|name| !servers.contains(name)).cloned().collect();
            not_configured = servers
                .iter()
                .filter(|name| !configured.contains_key(name) && name.as_str() != SKILLS)
                .cloned()
                .collect();
        }
        let (mut warnings, mut tools_not_known) = (Diagnostics(Vec::new()), Vec::new());
        if let (Ok(policy), Ok(settings)) = (&policy, &settings) {
            (warnings, tools_not_known) = compare(settings, policy);
        }
        let faults = policy.err().into_iter().chain(settings.err()).collect();
        Self { files: checked, faults, servers, not_in_policy, not_configured, warnings, tools_not_known }
    }

    fn tell(&self, format: Format) {
        for fault in &self.faults {
            tell_fault(fault, format);
        }
        if !self.faults.is_empty() {
            return;
        }
        tell_all(&self.warnings, format);
        let count = self.servers.len();
        let (own, above) =
            self.files.split_first().map_or((None, &[][..]), |(own, above)| (Some(own), above));
        println!(
            "{} is valid and speaks of {count} server{}",
            own.map(|path| shown(path)).unwrap_or_default(),
            if count == 1 { "" } else { "s" }
        );
        for path in above {
            println!("what it permits is narrowed by {}, which is valid as well", shown(path));
        }
        for server in &self.not_in_policy {
            println!("server {server} is configured but not in the policy: every call to it is denied");
        }
        for server in &self.not_configured {
            println!("server {server} is in the policy but not configured");
        }
        for server in &self.tools_not_known {
            println!(
                "the tools of server {server} are not known yet, so what the policy says of them was not compared: \
                 `lockhouse server test {server}` connects to it"
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

/// What the policy says of tools and parameters that a configured server does not have, and the servers whose tools nobody
/// knows. No server is started for it.
fn compare(settings: &Settings, policy: &Policy) -> (Diagnostics, Vec<ServerName>) {
    let (mut warnings, mut not_known) = (Vec::new(), Vec::new());
    for server in policy.servers() {
        let Some(definition) = settings.engine.servers.get(server) else { continue };
        match remembered(server, definition, &settings.engine.places) {
            Some(catalogue) => warnings.extend(unmatched(policy, server, &catalogue).0),
            None => not_known.push(server.clone()),
        }
    }
    (Diagnostics(warnings), not_known)
}

pub(in crate::cli) fn tell_fault(fault: &ConfigError, format: Format) {
    match fault {
        ConfigError::Faults(faults) => tell_all(faults, format),
        other => eprintln!("lockhouse: {other}"),
    }
}

/// Where compilers tell theirs: on stderr.
fn tell_all(faults: &Diagnostics, format: Format) {
    match format {
        Format::Short => faults.0.iter().for_each(|fault| eprintln!("{}", fault.short())),
        Format::Full if faults.0.is_empty() => {}
        Format::Full => {
            eprintln!("{}", faults.render(shows_colour()));
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

fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
