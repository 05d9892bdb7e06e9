//! `lockhouse server logs`: shows what an upstream server wrote to its standard error under `lockhouse serve`.
//!
//! A line of the log file has the format `TIME PID TEXT`. A full file is renamed to `NAME.log.1`, and a new one is
//! started.

mod log_file;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lockhouse_config::{ConfigError, Files};
use lockhouse_protocol::ServerName;
use serde_json::json;

use super::{load, unknown};
use crate::cli::terminal::sanitize;
use crate::cli::{UNAVAILABLE, output, print_config_error, print_error};
use log_file::LogFile;

/// How often to check the server's log file for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the server
    name: String,
    /// Number of lines to show
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 50)]
    lines: usize,
    /// Keep printing new lines until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) async fn logs(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let path = log_path(files, &arguments.name)?;
    let unreadable =
        |source| print_error(&ConfigError::Unreadable { path: path.clone(), source }, UNAVAILABLE);
    let mut file = LogFile::new(&path);
    let last = file.read_last(arguments.lines).map_err(unreadable)?;
    if last.is_empty() && file.is_missing() {
        eprintln!(
            "lockhouse: {} has written nothing to standard error under `lockhouse serve` yet; its log would be {}",
            arguments.name,
            path.display()
        );
    }
    last.iter().for_each(|line| print_line(line, arguments.json));
    if arguments.follow {
        let follow = async {
            while !output::is_closed() {
                tokio::time::sleep(POLL_INTERVAL).await;
                file.read_new().map_err(unreadable)?.iter().for_each(|line| print_line(line, arguments.json));
            }
            Ok::<_, ExitCode>(())
        };
        tokio::select! {
            done = follow => done?,
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the path of a server's log file. Fails if the server is not configured and has no log file.
fn log_path(files: &Files, name: &str) -> Result<PathBuf, ExitCode> {
    let settings = load(files)?;
    let known = ServerName::new(name)
        .ok()
        .map(|name| (settings.engine.places.log_file(&name), settings.engine.servers.contains_key(&name)));
    match known {
        Some((None, _)) => Err(print_config_error(&ConfigError::NoStateDirectory)),
        Some((Some(path), configured)) if configured || path.exists() => Ok(path),
        _ => Err(unknown(&settings, name).print()),
    }
}

fn print_line(line: &str, as_json: bool) {
    if !as_json {
        return println!("{}", sanitize(line));
    }
    let mut parts = line.splitn(3, ' ');
    let (time, pid, text) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
    let pid: Option<u32> = pid.and_then(|pid| pid.parse().ok());
    println!("{}", json!({"time": time, "pid": pid, "text": text}));
}
