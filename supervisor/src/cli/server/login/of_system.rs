//! `lockhouse server login` on a managed host: the engine of the system logs in, and this side opens the address.

use std::process::ExitCode;
use std::time::Duration;

use lockhouse_config::SystemEngine;
use lockhouse_link::OperatorError;
use lockhouse_messages::{LoginProgress, OperatorRequest, OperatorResponse, Presence};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::Callback;
use tokio::sync::mpsc;
use tokio::time::interval;
use url::Url;

use super::{Arguments, pasted_lines, print_granted, print_logged_out};
use crate::cli::approvals::password::{PasswordSubject, approve_on_terminal};
use crate::cli::control_client::{engine_id, print_refusal, request_one};
use crate::cli::desktop_browser;
use crate::cli::terminal::sanitize;
use crate::cli::{UNAVAILABLE, USAGE, print_error};

/// How often the engine is asked how far the login is.
const ASK_EVERY: Duration = Duration::from_millis(300);

/// Logs the person in whom `engine` serves.
pub(super) async fn login(engine: SystemEngine, arguments: &Arguments) -> ExitCode {
    let Ok(server) = ServerName::new(&arguments.name) else {
        eprintln!("lockhouse: {:?} is no name of a server", sanitize(&arguments.name));
        return ExitCode::from(USAGE);
    };
    let mut progress = match begin(engine, &server, arguments).await {
        Ok(progress) => progress,
        Err(status) => return status,
    };
    let (mut pasted, mut ticks) = (None, interval(ASK_EVERY));
    loop {
        match progress {
            LoginProgress::Waiting { address } if pasted.is_none() => {
                println!(
                    "To log in to {server}, open this address in a browser:\n\n  {}\n",
                    sanitize(&address)
                );
                if !arguments.no_browser && desktop_browser::is_available() {
                    open(&address).await;
                }
                println!(
                    "If the browser is on another machine, paste here the address that it is redirected to."
                );
                pasted = Some(pasted_lines());
            }
            LoginProgress::Unproven(_) | LoginProgress::Starting | LoginProgress::Waiting { .. } => {}
            LoginProgress::Granted { expires, is_renewable } => {
                let expires = expires.map(|seconds| std::time::UNIX_EPOCH + Duration::from_secs(seconds));
                print_granted(&server, expires, is_renewable);
                return ExitCode::SUCCESS;
            }
            LoginProgress::Failed(reason) => {
                eprintln!("lockhouse: not logged in to {server}: {}", sanitize(&reason));
                return ExitCode::from(UNAVAILABLE);
            }
        }
        let redirect = tokio::select! {
            _ = ticks.tick() => None,
            Some(line) = next_line(&mut pasted) => Some(line),
        };
        progress =
            match ask(engine, OperatorRequest::ContinueLogin { server: server.clone(), redirect }).await {
                Ok(progress) => progress,
                Err(status) => return status,
            };
    }
}

/// Begins the login, with the password of the person if that is asked for.
async fn begin(
    engine: SystemEngine,
    server: &ServerName,
    arguments: &Arguments,
) -> Result<LoginProgress, ExitCode> {
    let scopes = &arguments.scopes;
    let request = OperatorRequest::BeginLogin { server: server.clone(), scopes: scopes.clone(), proof: None };
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Login(LoginProgress::Unproven(Presence::Password))) => {
            let approved = approve_on_terminal(PasswordSubject::Login { server, scopes }).await;
            approved.map_err(|error| print_error(&error, UNAVAILABLE))?;
            Ok(LoginProgress::Starting)
        }
        Ok(OperatorResponse::Login(LoginProgress::Unproven(_))) | Err(OperatorError::Refused(_)) => {
            eprintln!("lockhouse: {}", root_logs_in(engine, server));
            Err(ExitCode::from(USAGE))
        }
        Ok(OperatorResponse::Login(progress)) => Ok(progress),
        reply => Err(print_refusal(reply)),
    }
}

/// Returns the next line that the person pastes, after the address was shown: before that, sudo reads the terminal.
async fn next_line(pasted: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match pasted {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

fn root_logs_in(engine: SystemEngine, server: &ServerName) -> String {
    let person = engine.person();
    format!(
        "on this host, root begins logins, because its requirements ask for no password of the person: \
         sudo lockhouse server login {server} --person {person}"
    )
}

/// Opens the address in a browser, which gets it from this process: other accounts can read the arguments of a program.
async fn open(address: &str) {
    let (Ok(address), Ok(browser)) = (Url::parse(address), Callback::listen(0).await) else { return };
    browser.await_browser(&address);
    desktop_browser::open(browser.port());
    // The answer of the authorization server goes to the engine, so no request has this state.
    tokio::spawn(async move { browser.wait_for_redirect("\0").await });
}

async fn ask(engine: SystemEngine, request: OperatorRequest) -> Result<LoginProgress, ExitCode> {
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Login(progress)) => Ok(progress),
        reply => Err(print_refusal(reply)),
    }
}

/// Deletes the stored token of a server of the person whom `engine` serves.
pub(super) async fn logout(engine: SystemEngine, name: &str) -> ExitCode {
    let Ok(server) = ServerName::new(name) else {
        eprintln!("lockhouse: {:?} is no name of a server", sanitize(name));
        return ExitCode::from(USAGE);
    };
    match request_one(engine_id(engine), &OperatorRequest::LogOut { server: server.clone() }).await {
        Ok(OperatorResponse::LoggedOut(logout)) => {
            print_logged_out(&server, &logout);
            ExitCode::SUCCESS
        }
        reply => print_refusal(reply),
    }
}
