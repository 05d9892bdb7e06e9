//! `lockhouse server login` and `logout`

mod callback;

use std::io::{BufRead, IsTerminal};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use lockhouse_audit::LoginStep;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Authorization, HttpEndpoint, Login, LoginError, Reach, log_out};
use tokio::sync::mpsc;

use self::callback::Callback;
use crate::cli::command_log::{CommandLog, NotRecorded};
use crate::cli::terminal::harmless;
use crate::cli::{UNAVAILABLE, USAGE, complain, complain_config};
use crate::config::{Files, Settings};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long the servers may take before and after.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of a pasted address.
const PASTED_CHARS_MAX: usize = 16 * 1024;

/// Whom to log in to, and how.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// As configured
    name: String,
    /// Only print the address
    #[arg(long)]
    no_browser: bool,
    /// Ask for this scope, in place of those that the server names; may be given again
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
}

/// Asks a person, by way of a browser, and keeps the token.
pub(super) async fn login(files: &Files, arguments: Arguments) -> ExitCode {
    let (name, endpoint) = match find(files, &arguments.name) {
        Ok(found) => found,
        Err(status) => return status,
    };
    // Before a person goes to a browser for nothing.
    let log = match CommandLog::open(files) {
        Ok(log) => log,
        Err(error) => return unrecorded(&name, &error),
    };
    let port = match &endpoint.authorization {
        Authorization::OAuth(client) => client.callback_port.unwrap_or(0),
        _ => 0,
    };
    let callback = match Callback::listen(port).await {
        Ok(callback) => callback,
        Err(error) => {
            eprintln!("lockhouse: cannot listen on 127.0.0.1:{port} for the browser: {error}");
            return ExitCode::from(UNAVAILABLE);
        }
    };
    let begun = Login::begin(&name, &endpoint, callback.address(), &arguments.scopes);
    let login = match in_time(begun).await {
        Ok(login) => login,
        Err(status) => return status,
    };
    println!("To log in to {name}, open this address in a browser:\n\n  {}\n", login.address);
    if !arguments.no_browser {
        open_browser(login.address.as_str());
    }
    println!("If the browser is on another machine, paste here the address that it ends at.");
    let Some(answer) = answer(&callback, &login.state).await else {
        eprintln!("lockhouse: nobody answered within {} minutes", PATIENCE.as_secs() / 60);
        return ExitCode::from(UNAVAILABLE);
    };
    if let Err(error) = log.login(&name, LoginStep::Answered) {
        return unrecorded(&name, &error);
    }
    let finished = in_time(login.finish(&answer)).await;
    let step = if finished.is_ok() { LoginStep::Granted } else { LoginStep::Failed };
    CommandLog::warn(log.login(&name, step));
    match finished {
        Ok(granted) => {
            let until = granted.until.map(humantime::format_rfc3339_seconds);
            let lasts = match (until, granted.renews_itself) {
                (Some(until), true) => {
                    format!(" The token lasts until {until} and is then renewed by itself.")
                }
                (Some(until), false) => format!(" The token lasts until {until}; log in again then."),
                (None, _) => String::new(),
            };
            println!("Logged in to {name}.{lasts}");
            ExitCode::SUCCESS
        }
        Err(status) => status,
    }
}

/// Whoever logs in is in the audit log, or is not logged in.
fn unrecorded(name: &ServerName, error: &NotRecorded) -> ExitCode {
    eprintln!("lockhouse: not logged in to {name}: {error}");
    ExitCode::from(UNAVAILABLE)
}

/// Forgets the token. That must not fail for want of a record.
pub(super) fn logout(files: &Files, name: &str) -> ExitCode {
    let (name, endpoint) = match find(files, name) {
        Ok(found) => found,
        Err(status) => return status,
    };
    match log_out(&name, &endpoint) {
        Ok(true) => {
            println!(
                "Forgot the token of {name}. The authorization server is not told; revoke it there if you must."
            );
            let recorded = CommandLog::open(files).and_then(|log| log.login(&name, LoginStep::LoggedOut));
            CommandLog::warn(recorded);
        }
        Ok(false) => println!("There is no token of {name}."),
        Err(error) => return complain(&error, UNAVAILABLE),
    }
    ExitCode::SUCCESS
}

fn find(files: &Files, name: &str) -> Result<(ServerName, HttpEndpoint), ExitCode> {
    let settings = Settings::load(files).map_err(|error| complain_config(&error))?;
    let found = settings.engine.servers.into_iter().find(|(known, _)| known.as_str() == name);
    match found.map(|(name, definition)| (name, definition.reach)) {
        Some((name, Reach::Http(endpoint))) => Ok((name, endpoint)),
        Some((name, Reach::Stdio(_))) => {
            eprintln!("lockhouse: server {name} is a program on this host, and needs no login here");
            Err(ExitCode::from(USAGE))
        }
        None => {
            eprintln!("lockhouse: there is no server {:?} in the configuration", harmless(name));
            Err(ExitCode::from(USAGE))
        }
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, LoginError>>) -> Result<T, ExitCode> {
    match tokio::time::timeout(SERVERS_TIMEOUT, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            eprintln!("lockhouse: {}", harmless(&error.to_string()));
            Err(ExitCode::from(UNAVAILABLE))
        }
        Err(_) => {
            eprintln!("lockhouse: no answer within {} s", SERVERS_TIMEOUT.as_secs());
            Err(ExitCode::from(UNAVAILABLE))
        }
    }
}

/// The address that the browser was sent to, from itself or pasted.
async fn answer(callback: &Callback, state: &str) -> Option<String> {
    let mut pasted = pasted_lines();
    let first = async {
        tokio::select! {
            address = callback.answer(state) => address,
            Some(address) = pasted.recv() => address,
        }
    };
    tokio::time::timeout(PATIENCE, first).await.ok()
}

/// Lines of standard input. A thread of its own, since a read of a terminal cannot be given up; it ends with the process.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let line = line.trim();
            if !line.is_empty()
                && line.len() <= PASTED_CHARS_MAX
                && sender.blocking_send(line.into()).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Where there is a person with a screen.
fn open_browser(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if has_screen && std::io::stdout().is_terminal() {
        let mut command = Command::new("xdg-open");
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The address is on the screen as well.
        let _ = command.spawn();
    }
}
