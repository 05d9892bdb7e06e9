//! `lockhouse server login` and `lockhouse server logout`: obtain and delete the OAuth token of an upstream server.

mod of_system;

use std::io::BufRead;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_audit::LoginStep;
use lockhouse_config::{ConfigError, Files, Settings, SystemEngine};
use lockhouse_messages::{Logout, Owner};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{
    Authorization, Callback, Endpoint, HttpEndpoint, LOGIN_REQUESTS_TIMEOUT, LOGIN_TIMEOUT, Login,
    LoginError, ServerDefinition, UserAccount, log_out,
};
use nix::unistd::Uid;
use tokio::sync::mpsc;

use super::typed_value;
use crate::cli::command_audit_log::{CommandAuditLog, RecordError};
use crate::cli::desktop_browser;
use crate::cli::terminal::sanitize;
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error};

/// The maximum length of a redirect address that the user pastes, in bytes.
const PASTED_CHARS_MAX: usize = 16 * 1024;

/// Options of `lockhouse server login`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The configured name of the server
    name: String,
    /// Print the address without opening a browser
    #[arg(long)]
    no_browser: bool,
    /// With auth = "per_user": log in for the list of tools, which all users see, and not for your own calls
    #[arg(long)]
    service: bool,
    /// Log in for this person, whom an engine of the system serves; only for root
    #[arg(long, value_name = "UID")]
    person: Option<u32>,
    /// Request this scope instead of those that the server names; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
}

/// Logs in to an upstream server through a browser (OAuth authorization code flow) and stores the OAuth token.
pub(super) async fn login(files: &Files, arguments: Arguments) -> ExitCode {
    match engine_of(arguments.person) {
        Ok(Some(engine)) => return of_system::login(engine, &arguments).await,
        Ok(None) => {}
        Err(error) => return print_config_error(&error),
    }
    let (name, endpoint, account) = match find(files, &arguments.name, arguments.service) {
        Ok(Configured::Http { name, endpoint, account }) => (name, endpoint, account),
        Ok(Configured::Secret { name, account }) => return store_secret(files, &name, &account),
        Err(status) => return status,
    };
    // Opened first, so that the user does not log in for nothing.
    let log = match CommandAuditLog::open(files) {
        Ok(log) => log,
        Err(error) => return report_unrecorded(&name, &error),
    };
    let port = match &endpoint.authorization {
        Authorization::OAuth(client) => client.callback_port.unwrap_or(0),
        _ => 0,
    };
    let callback = match Callback::listen(port).await {
        Ok(callback) => callback,
        Err(error) => {
            eprintln!("lockhouse: cannot listen at localhost:{port} for the browser: {error}");
            return ExitCode::from(UNAVAILABLE);
        }
    };
    let begun = async {
        match &account {
            Some(account) => account.begin_login(callback.address(), &arguments.scopes).await,
            None => Login::begin(&name, &endpoint, callback.address(), &arguments.scopes).await,
        }
    };
    let login = match with_timeout(begun).await {
        Ok(login) => login,
        Err(status) => return status,
    };
    print_address(&name, &login, account.is_some());
    if !arguments.no_browser && desktop_browser::is_available() {
        callback.await_browser(&login.address);
        desktop_browser::open(callback.port());
    }
    println!("If the browser is on another machine, paste here the address that it is redirected to.");
    let Some(answer) = wait_for_redirect(&callback, &login.state).await else {
        eprintln!("lockhouse: the login was not completed within {} minutes", LOGIN_TIMEOUT.as_secs() / 60);
        return ExitCode::from(UNAVAILABLE);
    };
    if let Err(error) = log.login(&name, LoginStep::Answered) {
        return report_unrecorded(&name, &error);
    }
    let finished = with_timeout(login.finish(&answer)).await;
    let step = if finished.is_ok() { LoginStep::Granted } else { LoginStep::Failed };
    CommandAuditLog::warn(log.login(&name, step));
    match finished {
        Ok(granted) => {
            print_granted(&name, granted.expires, granted.is_renewable);
            ExitCode::SUCCESS
        }
        Err(status) => status,
    }
}

/// Tells the user where to log in. `is_own` says that calls of the server use the credentials of each user.
fn print_address(name: &ServerName, login: &Login, is_own: bool) {
    if is_own {
        println!(
            "This login is for your own calls of {name}; the list of its tools may need one with --service."
        );
    }
    println!("To log in to {name}, open this address in a browser:\n\n  {}\n", login.address);
}

fn print_granted(name: &ServerName, expires: Option<SystemTime>, is_renewable: bool) {
    let lasts = match (expires.map(humantime::format_rfc3339_seconds), is_renewable) {
        (Some(until), true) => format!(" The token expires at {until} and is renewed automatically."),
        (Some(until), false) => format!(" The token expires at {until}; log in again after that."),
        (None, _) => String::new(),
    };
    println!("Logged in to {name}.{lasts}");
}

fn print_logged_out(name: &ServerName, logout: &Logout) {
    match logout {
        Logout::Nothing => println!("There is no stored token of {name}."),
        Logout::Complete => {
            println!("Deleted the token of {name}, and revoked it at the authorization server.")
        }
        Logout::NotRevoked(reason) => println!(
            "Deleted the token of {name}. It was not revoked; revoke it at the authorization server if necessary: {}",
            sanitize(reason)
        ),
    }
}

/// Returns the engine of the system that logs in: that of a person whom root names, or that of this account.
fn engine_of(person: Option<u32>) -> Result<Option<SystemEngine>, ConfigError> {
    match person {
        Some(person) => Ok(Some(SystemEngine::of_person(Uid::from_raw(person)))),
        None => SystemEngine::of_this_account(),
    }
}

/// Reports that a login cannot be recorded in the audit log, and is therefore not completed. Returns the exit status.
fn report_unrecorded(name: &ServerName, error: &RecordError) -> ExitCode {
    eprintln!("lockhouse: not logged in to {name}: {error}");
    ExitCode::from(UNAVAILABLE)
}

/// Deletes the stored OAuth token of an upstream server, even if this cannot be recorded in the audit log.
pub(super) async fn logout(files: &Files, name: &str, of_service: bool) -> ExitCode {
    match engine_of(None) {
        Ok(Some(engine)) => return of_system::logout(engine, name).await,
        Ok(None) => {}
        Err(error) => return print_config_error(&error),
    }
    let found = match find(files, name, of_service) {
        Ok(found) => found,
        Err(status) => return status,
    };
    let (name, logout) = match &found {
        Configured::Secret { name, account } | Configured::Http { name, account: Some(account), .. } => {
            (name, account.log_out().await)
        }
        Configured::Http { name, endpoint, account: None } => (name, log_out(name, endpoint).await),
    };
    match logout {
        Ok(logout) => {
            print_logged_out(name, &logout);
            if !logout.had_token() {
                return ExitCode::SUCCESS;
            }
            let recorded = CommandAuditLog::open(files).and_then(|log| log.login(name, LoginStep::LoggedOut));
            CommandAuditLog::warn(recorded);
        }
        Err(error) => return print_error(&error, UNAVAILABLE),
    }
    ExitCode::SUCCESS
}

/// A server in the configuration that this user can log in to.
enum Configured {
    /// Its calls use a secret of each user.
    Secret { name: ServerName, account: Box<UserAccount> },
    /// It has OAuth logins: with an account of this user, if its calls use that of each user.
    Http { name: ServerName, endpoint: Box<HttpEndpoint>, account: Option<Box<UserAccount>> },
}

/// Reads the secret of this user for a server from the terminal or standard input, and stores it.
fn store_secret(files: &Files, name: &ServerName, account: &UserAccount) -> ExitCode {
    let stored = typed_value::read(name.as_str()).map_err(|error| error.to_string()).and_then(|secret| {
        let recorded = CommandAuditLog::open(files).and_then(|log| log.login(name, LoginStep::Granted));
        recorded.map_err(|error| error.to_string())?;
        account.set_secret(&secret).map_err(|error| error.to_string())
    });
    match stored {
        Ok(()) => {
            println!("Stored your secret for {name}.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockhouse: no secret for {name} is stored: {}", sanitize(&error));
            ExitCode::from(UNAVAILABLE)
        }
    }
}

/// Finds a server. `of_service` is for the login of the service to a server whose calls use credentials of each user.
fn find(files: &Files, name: &str, of_service: bool) -> Result<Configured, ExitCode> {
    let settings = Settings::load(files).map_err(|error| print_config_error(&error))?;
    let users = settings.engine.places.users.clone();
    let found = settings.engine.servers.into_iter().find(|(known, _)| known.as_str() == name);
    let account = |name: &ServerName, definition: &ServerDefinition| {
        let account = UserAccount::of(Owner::LOCAL, name, definition, users.as_ref());
        account.filter(|_| !of_service).map(Box::new)
    };
    match found.map(|(name, definition)| (account(&name, &definition), name, definition.endpoint)) {
        Some((Some(account), name, _)) if account.needs_secret() => Ok(Configured::Secret { name, account }),
        Some((account, name, Endpoint::Http(endpoint))) => {
            Ok(Configured::Http { name, endpoint: Box::new(endpoint), account })
        }
        Some((_, name, Endpoint::Stdio(_) | Endpoint::Socket(_))) => {
            eprintln!("lockhouse: server {name} is a local program; only servers over HTTP need a login");
            Err(ExitCode::from(USAGE))
        }
        None => {
            eprintln!("lockhouse: there is no server {:?} in the configuration", sanitize(name));
            Err(ExitCode::from(USAGE))
        }
    }
}

async fn with_timeout<T>(step: impl Future<Output = Result<T, LoginError>>) -> Result<T, ExitCode> {
    match tokio::time::timeout(LOGIN_REQUESTS_TIMEOUT, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            eprintln!("lockhouse: {}", sanitize(&error.to_string()));
            Err(ExitCode::from(UNAVAILABLE))
        }
        Err(_) => {
            eprintln!("lockhouse: no answer within {} s", LOGIN_REQUESTS_TIMEOUT.as_secs());
            Err(ExitCode::from(UNAVAILABLE))
        }
    }
}

/// Waits for the address, with the login's `state`, to which the browser is redirected after the login. The listener
/// receives the address, or the user pastes it. Returns `None` after [`LOGIN_TIMEOUT`].
async fn wait_for_redirect(callback: &Callback, state: &str) -> Option<String> {
    let mut pasted = pasted_lines();
    let first = async {
        tokio::select! {
            address = callback.wait_for_redirect(state) => address,
            Some(address) = pasted.recv() => address,
        }
    };
    tokio::time::timeout(LOGIN_TIMEOUT, first).await.ok()
}

/// Returns the lines of standard input, in which the user may paste the redirect address. A thread reads them until the
/// process exits, since a blocking read cannot be cancelled.
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
