//! `lockhouse user forget`: removes what Lockhouse stores about a user of a service.

use std::process::ExitCode;

use lockhouse_access::{TokenName, client_name_of_user, proven_by_certificate};
use lockhouse_audit::{Change, ChangeTarget, Channel};
use lockhouse_base::principal::owner_of_name;
use lockhouse_config::{self as config, Files, Settings};
use lockhouse_link::OperatorError;
use lockhouse_messages::{Logout, OperatorRequest, OperatorResponse, Owner};
use lockhouse_policies::printable;
use lockhouse_stores::skills::Skills;
use lockhouse_upstream::{LOGIN_REQUESTS_TIMEOUT, UserAccount};
use nix::unistd::{Uid, User};

use super::command_audit_log::CommandAuditLog;
use super::confirmation::Confirmation;
use super::control_client;
use super::{UNAVAILABLE, USAGE, print_config_error};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Remove what Lockhouse stores about a user: credentials, skills, results, files, sessions, tokens
    #[command(arg_required_else_help = true)]
    Forget {
        /// The name of the user in the policy and the audit log: NAME of a token, user:NAME, oauth:SUBJECT or certificate:NAME
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// Why nothing is known about a user of this name.
#[derive(Debug, thiserror::Error)]
enum NameError {
    #[error("{0} is not the name of a token; other users are user:NAME, oauth:SUBJECT or certificate:NAME")]
    Token(String),
    #[error("this host has no user {0}; use user:UID if the user was removed")]
    NoUser(String),
    #[error("oauth:SUBJECT needs [http.oauth] in the configuration, which names the issuer")]
    NoIssuer,
}

/// A user of a service.
struct Subject {
    /// The authenticated name, from which the owner is derived.
    name: String,
    owner: Owner,
    /// The name in records of the audit log.
    client: String,
    /// The name of the tokens with which the user authenticates.
    token: Option<TokenName>,
}

pub(super) async fn user(files: &Files, command: Command) -> ExitCode {
    let Command::Forget { name, confirmation } = command;
    let settings = match Settings::load(files) {
        Ok(settings) => settings,
        Err(error) => return print_config_error(&error),
    };
    let subject = match Subject::find(&name, &settings) {
        Ok(subject) => subject,
        Err(error) => {
            eprintln!("lockhouse: {error}");
            return ExitCode::from(USAGE);
        }
    };
    println!(
        "This removes the tokens, credentials, skills, sessions, runs, results and files of {}.",
        printable(&name)
    );
    if !confirmation.confirm("Remove them?") {
        return confirmation.unconfirmed();
    }
    // The record names nobody: it has the digest by which everything of the user was stored.
    let action = format!("forget {}", subject.owner.user().to_hex());
    let log = match CommandAuditLog::open(files) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("lockhouse: nothing was removed, because the audit log cannot record it: {error}");
            return ExitCode::from(UNAVAILABLE);
        }
    };
    let state = settings.engine.state_directory.clone().unwrap_or_default();
    let change = |failed| Change {
        target: ChangeTarget::User,
        file: &state,
        action: &action,
        through: Channel::Command,
        before: None,
        after: None,
        presence: None,
        failed,
    };
    if let Err(error) = log.change(change(None)) {
        eprintln!("lockhouse: nothing was removed, because the audit log cannot record it: {error}");
        return ExitCode::from(UNAVAILABLE);
    }
    let mut faults = subject.forget(files, &settings).await;
    faults.extend(erase_names(&log, &subject));
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    for fault in &faults {
        eprintln!("lockhouse: {fault}");
    }
    CommandAuditLog::warn(log.change(change(Some("not everything was removed"))));
    ExitCode::from(UNAVAILABLE)
}

/// Erases the names in the audit log, after everything whose records have them. Returns why they may still be there.
fn erase_names(log: &CommandAuditLog, subject: &Subject) -> Option<String> {
    match log.erase_names(&subject.names()) {
        Ok(true) => println!(
            "  name in the audit log: erased\nWhat was forwarded, copied or backed up still has the name."
        ),
        Ok(false) => println!(
            "Records of the audit log still have the name, because erasable_names of [audit] is off. So has what was forwarded, \
             copied or backed up."
        ),
        Err(error) => return Some(format!("name in the audit log: {error}")),
    }
    None
}

impl Subject {
    fn find(name: &str, settings: &Settings) -> Result<Self, NameError> {
        let (proven, client, token) = match name.split_once(':') {
            Some(("user", user)) => {
                let uid = uid(user)?;
                (format!("user:{uid}"), client_name_of_user(uid.as_raw()), None)
            }
            Some(("oauth", subject)) => {
                let oauth = settings.access.oauth.as_ref().ok_or(NameError::NoIssuer)?;
                (format!("{subject}@{}", oauth.issuer_text), name.to_owned(), None)
            }
            Some(("certificate", named)) => (proven_by_certificate(named), name.to_owned(), None),
            _ => {
                let token: TokenName = name.parse().map_err(|_| NameError::Token(printable(name)))?;
                (format!("token:{name}"), name.to_owned(), Some(token))
            }
        };
        Ok(Self { owner: owner_of_name(&proven), name: proven, client, token })
    }

    /// Returns the names that records may have. Before the user had a name on this host, it was the id.
    fn names(&self) -> [String; 2] {
        [self.name.clone(), self.client.clone()]
    }

    /// Removes everything. The tokens are first, so that the user stores nothing new meanwhile. Returns what failed.
    async fn forget(&self, files: &Files, settings: &Settings) -> Vec<String> {
        let mut faults = Vec::new();
        let mut report = |what: &str, removed: Result<bool, String>| match removed {
            Ok(true) => println!("  {what}: removed"),
            Ok(false) => println!("  {what}: none"),
            Err(error) => faults.push(format!("{what}: {}", printable(&error))),
        };
        if let (Some(name), Some(tokens)) = (&self.token, &settings.access.tokens) {
            // A process that runs ends what a revoked token began.
            let forgotten = tokens.revoke(name).and_then(|_| tokens.forget(name));
            report("tokens", forgotten.map_err(|error| error.to_string()));
        }
        for (server, logout) in self.log_out(settings).await {
            let logout = logout.map(|logout| {
                if let Logout::NotRevoked(reason) = &logout {
                    let reason = printable(reason);
                    println!("  {server}: the token was not revoked; revoke it there if necessary: {reason}");
                }
                true
            });
            report(&format!("credentials for {server}"), logout);
        }
        if let Some(users) = &settings.engine.places.users {
            report("other credentials", users.forget(self.owner).map_err(|error| error.to_string()));
        }
        let skills = config::load_skill_settings(files).map_err(|error| error.to_string());
        let skills = skills.and_then(|settings| {
            Skills::new(&settings).forget_client(&self.name).map_err(|error| error.to_string())
        });
        report("skills", skills);
        let request = OperatorRequest::ForgetUser { name: self.name.clone() };
        for (pid, reply) in control_client::request_reachable(&request).await {
            let removed = match reply {
                Ok(OperatorResponse::UserForgotten) => Ok(true),
                Ok(OperatorResponse::Refused { reason }) | Err(OperatorError::Refused(reason)) => Err(reason),
                Ok(_) | Err(OperatorError::OtherVersion) => {
                    Err("it has another version: restart it".to_owned())
                }
                Err(OperatorError::NoAnswer) => Err("it does not answer".to_owned()),
            };
            report(&format!("sessions, runs, results and files of process {pid}"), removed);
        }
        faults
    }

    /// Deletes and revokes what the user has for each server.
    async fn log_out(&self, settings: &Settings) -> Vec<(String, Result<Logout, String>)> {
        let users = settings.engine.places.users.as_ref();
        let mut done = Vec::new();
        for (server, definition) in &settings.engine.servers {
            let account = UserAccount::of(self.owner, server, definition, users);
            let Some(account) = account.filter(UserAccount::is_present) else { continue };
            let logout = match tokio::time::timeout(LOGIN_REQUESTS_TIMEOUT, account.log_out()).await {
                Ok(logout) => logout.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no answer within {} s", LOGIN_REQUESTS_TIMEOUT.as_secs())),
            };
            done.push((server.to_string(), logout));
        }
        done
    }
}

/// Returns the id of a user of this host, by the name or the id.
fn uid(user: &str) -> Result<Uid, NameError> {
    if let Ok(uid) = user.parse() {
        return Ok(Uid::from_raw(uid));
    }
    let found = User::from_name(user).ok().flatten();
    found.map(|user| user.uid).ok_or_else(|| NameError::NoUser(printable(user)))
}
