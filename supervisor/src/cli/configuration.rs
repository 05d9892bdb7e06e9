//! `lockhouse config`: tools for the people who write the configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::USAGE;
use super::policy::check::{Format, faults_to_json, tell_fault};
use super::terminal::{for_stdout, harmless};
use crate::config::{self, Files, Settings, Unused};

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Check the configuration in force, or another file; nothing is started
    Check(Arguments),
}

/// Which configuration, and how to tell what is wrong with it.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A configuration that is not in force [default: the one that is]
    file: Option<PathBuf>,
    /// How faults are told
    #[arg(long, value_enum, default_value_t = Format::Full, conflicts_with = "json")]
    format: Format,
    /// Tell everything as JSON
    #[arg(long)]
    json: bool,
}

/// Checks it: 0 for a configuration without a fault, 2 for any other. Servers that are left out do not count as faults.
pub(super) fn configuration(files: &Files, command: Command) -> ExitCode {
    let Command::Check(Arguments { file, format, json }) = command;
    let mut files = files.clone();
    files.config = file.or(files.config);
    let path = config::config_path(&files);
    let loaded = Settings::load(&files);
    if json {
        println!("{}", for_stdout(&format!("{:#}", to_json(path, &loaded))));
    } else {
        tell(path, &loaded, format);
    }
    if loaded.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

type Loaded = Result<Settings, config::ConfigError>;

fn tell(path: Option<PathBuf>, loaded: &Loaded, format: Format) {
    let settings = match loaded {
        Ok(settings) => settings,
        Err(fault) => return tell_fault(fault, format),
    };
    let count = settings.engine.servers.len();
    let servers = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    match path {
        Some(path) => println!("{} is valid; {servers} can be used", harmless(&path.display().to_string())),
        None => println!("there is no configuration, so every key has its default; {servers} can be used"),
    }
    for Unused { name, origin, reason, disabled } in &settings.unused {
        let why = if *disabled { "it is switched off".into() } else { harmless(reason) };
        println!("server {} is not used: {why} ({})", harmless(name), harmless(origin));
    }
    for secret in settings.readable_secrets() {
        eprintln!("lockhouse: warning: {}", harmless(&secret.to_string()));
    }
}

fn to_json(path: Option<PathBuf>, loaded: &Loaded) -> Value {
    let file = path.map(|path| path.display().to_string());
    match loaded {
        Err(fault) => json!({"valid": false, "file": file, "errors": faults_to_json(fault)}),
        Ok(settings) => {
            let unused = |unused: &Unused| {
                json!({
                    "name": unused.name, "place": unused.origin, "reason": unused.reason, "disabled": unused.disabled,
                })
            };
            let warnings = settings.readable_secrets();
            json!({
                "valid": true, "file": file, "errors": [],
                "servers": settings.engine.servers.keys().map(|name| name.as_str()).collect::<Value>(),
                "not_used": settings.unused.iter().map(unused).collect::<Value>(),
                "warnings": warnings.iter().map(|secret| json!({"message": secret.to_string()})).collect::<Value>(),
            })
        }
    }
}
