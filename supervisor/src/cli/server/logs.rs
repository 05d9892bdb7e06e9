//! `lockhouse server logs`: what running `lockhouse serve` processes wrote down of a server's standard error.
//!
//! A line is `TIME PID TEXT`. A full file becomes `NAME.log.1`, and a new one is begun.

mod file;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use serde_json::json;

use super::{load, unknown};
use crate::cli::terminal::harmless;
use crate::cli::{UNAVAILABLE, complain, complain_config, output};
use crate::config::{ConfigError, Files};
use file::LogFile;

/// How often it is looked whether there is more.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The server
    name: String,
    /// The last so many lines
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 50)]
    lines: usize,
    /// Wait for more, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// One JSON object for each line
    #[arg(long)]
    json: bool,
}

pub(super) async fn logs(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let path = path(files, &arguments.name)?;
    let unreadable = |source| complain(&ConfigError::Unreadable { path: path.clone(), source }, UNAVAILABLE);
    let mut file = LogFile::new(&path);
    let last = file.last(arguments.lines).map_err(unreadable)?;
    if last.is_empty() && file.is_missing() {
        eprintln!(
            "lockhouse: {} has written nothing yet while `lockhouse serve` ran it; it would be in {}",
            arguments.name,
            path.display()
        );
    }
    last.iter().for_each(|line| print(line, arguments.json));
    if arguments.follow {
        let follow = async {
            while !output::unread() {
                tokio::time::sleep(LOOK_EVERY).await;
                file.more().map_err(unreadable)?.iter().for_each(|line| print(line, arguments.json));
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

/// The log of a server that is configured, or was.
fn path(files: &Files, name: &str) -> Result<PathBuf, ExitCode> {
    let settings = load(files)?;
    let known = ServerName::new(name)
        .ok()
        .map(|name| (settings.engine.places.log(&name), settings.engine.servers.contains_key(&name)));
    match known {
        Some((None, _)) => Err(complain_config(&ConfigError::NoStateDirectory)),
        Some((Some(path), configured)) if configured || path.exists() => Ok(path),
        _ => Err(unknown(&settings, name)),
    }
}

fn print(line: &str, as_json: bool) {
    if !as_json {
        return println!("{}", harmless(line));
    }
    let mut parts = line.splitn(3, ' ');
    let (time, pid, text) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
    let pid: Option<u32> = pid.and_then(|pid| pid.parse().ok());
    println!("{}", json!({"time": time, "pid": pid, "text": text}));
}
