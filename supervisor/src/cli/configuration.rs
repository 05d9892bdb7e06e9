//! `lockhouse config`: checks configuration files.

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_config::{self as config, Files, Settings, SkippedServer};
use serde_json::{Value, json};

use super::USAGE;
use super::policy::check::{Format, faults_to_json, print_fault};
use super::terminal::{for_stdout, sanitize};

/// Subcommands of `lockhouse config`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Check the active configuration, or another file, without starting anything
    Check(Arguments),
}

/// Options of `lockhouse config check`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The configuration file to check [default: the active one]
    file: Option<PathBuf>,
    /// How errors are printed
    #[arg(long, value_enum, default_value_t = Format::Full, conflicts_with = "json")]
    format: Format,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `lockhouse config check`. The exit status is 0 if the configuration is valid, and 2 otherwise. An
/// upstream server that cannot be used is reported, but does not make the configuration invalid.
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
        Err(fault) => return print_fault(fault, format),
    };
    let count = settings.engine.servers.len();
    let servers = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    match path {
        Some(path) => println!("{} is valid; {servers} can be used", sanitize(&path.display().to_string())),
        None => println!("there is no configuration file, so the defaults apply; {servers} can be used"),
    }
    for SkippedServer { name, origin, reason, disabled } in &settings.skipped_servers {
        let why = if *disabled { "it is disabled".into() } else { sanitize(reason) };
        println!("server {} is not used: {why} ({})", sanitize(name), sanitize(origin));
    }
    for warning in settings.warnings() {
        eprintln!("lockhouse: warning: {}", sanitize(&warning));
    }
}

fn to_json(path: Option<PathBuf>, loaded: &Loaded) -> Value {
    let file = path.map(|path| path.display().to_string());
    match loaded {
        Err(fault) => json!({"valid": false, "file": file, "errors": faults_to_json(fault)}),
        Ok(settings) => {
            let unused = |unused: &SkippedServer| {
                json!({
                    "name": unused.name, "place": unused.origin, "reason": unused.reason, "disabled": unused.disabled,
                })
            };
            let warnings = settings.warnings();
            json!({
                "valid": true, "file": file, "errors": [],
                "servers": settings.engine.servers.keys().map(|name| name.as_str()).collect::<Value>(),
                "not_used": settings.skipped_servers.iter().map(unused).collect::<Value>(),
                "warnings": warnings.iter().map(|warning| json!({"message": warning})).collect::<Value>(),
            })
        }
    }
}
