//! `lockhouse approve`, `accept-policy`, `accept-tools` and `log-in-server`, which polkit or sudo runs as root after a person gave
//! their password: they approve one question of that person's engine, accept the policy that the person proposes for it or tools of a
//! server, or begin a login.
//!
//! They are programs of root that another account starts with arguments of its choice, so they have a command line of their own,
//! without the options that name files, and each does one thing. The account is that which polkit or sudo state; both remove what
//! the person's environment has.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use lockhouse_link::{Exchange, ExchangeStep, OperatorClient};
use lockhouse_messages::{
    Approval, ApprovalEvent, ApprovalInput, ApprovalQuestion, ApproverAnswer, ApproverDecision, Event, Input,
    OperatorRequest, OperatorResponse, PasswordMethod, PresenceProof, WatcherRole,
};
use lockhouse_protocol::ServerName;
use nix::unistd::{Uid, geteuid};

use super::approvals::password::{self, ACCEPT_POLICY, ACCEPT_TOOLS, APPROVE, LOG_IN_SERVER};
use super::{UNAVAILABLE, USAGE, control_client, print_error};

/// How long the engine may take to show what is to be approved, and to approve it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The variables in which polkit and sudo name the account that has given its password.
const POLKIT_VARIABLE: &str = "PKEXEC_UID";
const SUDO_VARIABLE: &str = "SUDO_UID";

/// The number of the engine of the system, as the commands of the person whom it serves number it.
const ENGINE_OF_SYSTEM: u32 = 0;

/// Commands of root for a person who gave a password
#[derive(Debug, Parser)]
#[command(name = "lockhouse")]
enum Command {
    /// Approve one question. `lockhouse approvals` starts it
    Approve {
        /// The calls of the question
        calls: String,
        /// Which calls the answer approves
        scope: Scope,
        /// The process that asks, as the person's commands number it
        process: u32,
        /// The number of the question
        question: u64,
        /// The digest of the question
        digest: String,
    },
    /// Accept a proposed policy. `lockhouse policy accept` starts it
    AcceptPolicy {
        /// What the policy may permit beyond the approved one
        changes: String,
        /// The digest of the policy
        digest: String,
    },
    /// Accept the tools of a server. `lockhouse server accept` starts it
    AcceptTools {
        /// The name of the server
        server: String,
        /// Which tools have changed
        changes: String,
        /// The digest of the tools
        digest: String,
    },
    /// Begin a login to a server. `lockhouse server login` starts it
    LogInServer {
        /// The name of the server
        #[arg(value_parser = parse_server)]
        server: ServerName,
        /// The scopes that are requested
        scopes: Vec<String>,
    },
}

fn parse_server(name: &str) -> Result<ServerName, String> {
    ServerName::new(name).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scope {
    Once,
    Execution,
    Always,
}

impl From<Scope> for Approval {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Once => Self::Once,
            Scope::Execution => Self::Execution,
            Scope::Always => Self::Always,
        }
    }
}

/// The account that gave its password, and the program that has asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Person {
    uid: Uid,
    method: PasswordMethod,
}

impl Person {
    fn proof(self) -> Option<PresenceProof> {
        Some(PresenceProof::Password { method: self.method, uid: self.uid.as_raw() })
    }

    /// Connects to an engine that runs code for this person.
    async fn engine(self, process: u32) -> Result<OperatorClient, ApproveError> {
        let client = control_client::connect_to_engine_of(self.uid, process).await;
        client.ok_or(ApproveError::NoEngine(self.uid))
    }
}

/// Why it was not approved.
#[derive(Debug, thiserror::Error)]
enum ApproveError {
    #[error(
        "this command is run by polkit or sudo as root: use `lockhouse approvals` or `lockhouse policy accept`"
    )]
    NotRoot,
    #[error(
        "neither polkit nor sudo says which person gave a password, so it is not approved: root uses `lockhouse approvals` and \
         `lockhouse policy accept`"
    )]
    NoPerson,
    #[error("polkit and sudo name two accounts, so it is not approved")]
    TwoPeople,
    #[error("no engine of user {0} answers")]
    NoEngine(Uid),
    #[error("no engine of user {0} asks this question any more")]
    NoQuestion(Uid),
    #[error("this is not the question that was shown, so it is not approved")]
    OtherQuestion,
    #[error(
        "this is not the policy that was shown, so it is not accepted: `lockhouse policy proposals` shows it"
    )]
    OtherPolicy,
    #[error(
        "these are not the tools that were shown, so they are not accepted: `lockhouse server diff` shows them"
    )]
    OtherTools,
    #[error("it was not approved: {0}")]
    Refused(String),
}

/// Whether this process was started as one of these commands.
pub(super) fn is_named() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| {
        [APPROVE, ACCEPT_POLICY, ACCEPT_TOOLS, LOG_IN_SERVER].iter().any(|name| word == *name)
    })
}

/// Runs the command that this process was started as.
pub(super) async fn approve() -> ExitCode {
    match try_approve(Command::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (ApproveError::NotRoot | ApproveError::NoPerson | ApproveError::TwoPeople)) => {
            print_error(&error, USAGE)
        }
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

async fn try_approve(command: Command) -> Result<(), ApproveError> {
    if !geteuid().is_root() {
        return Err(ApproveError::NotRoot);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let person = person(variable(POLKIT_VARIABLE).as_deref(), variable(SUDO_VARIABLE).as_deref())?;
    match command {
        Command::Approve { calls, scope, process, question, digest } => {
            let client = person.engine(process).await?;
            let mut watching = client.watch_approvals(WatcherRole::Approver).await;
            let question = find_question(&mut watching, question).await;
            let question = question.ok_or(ApproveError::NoQuestion(person.uid))?;
            if question.digest != digest || password::calls_text(&question) != calls {
                return Err(ApproveError::OtherQuestion);
            }
            answer(&mut watching, &question, scope.into(), person).await
        }
        Command::AcceptPolicy { changes, digest } => {
            let client = person.engine(ENGINE_OF_SYSTEM).await?;
            match ask(&client, OperatorRequest::ShowProposal, person).await? {
                OperatorResponse::Proposal(shown)
                    if shown.digest.as_deref() == Some(&digest)
                        && password::changes_text(&shown) == changes => {}
                _ => return Err(ApproveError::OtherPolicy),
            }
            let request = OperatorRequest::AcceptProposal { digest, proof: person.proof() };
            accept(&client, request, person).await
        }
        Command::LogInServer { server, scopes } => {
            let client = person.engine(ENGINE_OF_SYSTEM).await?;
            let request = OperatorRequest::BeginLogin { server, scopes, proof: person.proof() };
            accept(&client, request, person).await
        }
        Command::AcceptTools { server, changes, digest } => {
            let client = person.engine(ENGINE_OF_SYSTEM).await?;
            match ask(&client, OperatorRequest::ReviewDefinitions { server: server.clone() }, person).await? {
                OperatorResponse::Definitions(shown)
                    if shown.digest == digest && password::tools_text(&shown) == changes => {}
                _ => return Err(ApproveError::OtherTools),
            }
            let request = OperatorRequest::AcceptDefinitions { server, digest, proof: person.proof() };
            accept(&client, request, person).await
        }
    }
}

/// Sends a request that accepts something.
async fn accept(
    client: &OperatorClient,
    request: OperatorRequest,
    person: Person,
) -> Result<(), ApproveError> {
    match ask(client, request, person).await? {
        OperatorResponse::Reloaded(_)
        | OperatorResponse::DefinitionsAccepted(_)
        | OperatorResponse::Login(_) => Ok(()),
        OperatorResponse::Refused { reason } => Err(ApproveError::Refused(reason)),
        _ => Err(ApproveError::NoEngine(person.uid)),
    }
}

async fn ask(
    client: &OperatorClient,
    request: OperatorRequest,
    person: Person,
) -> Result<OperatorResponse, ApproveError> {
    let response = tokio::time::timeout(ANSWER_TIMEOUT, client.ask(request)).await;
    response.ok().and_then(Result::ok).ok_or(ApproveError::NoEngine(person.uid))
}

async fn find_question(watching: &mut Exchange, number: u64) -> Option<Box<ApprovalQuestion>> {
    let select = |event| match event {
        ApprovalEvent::Ask(asked) if asked.id == number => Some(asked),
        _ => None,
    };
    await_event(watching, select).await
}

async fn answer(
    watching: &mut Exchange,
    question: &ApprovalQuestion,
    scope: Approval,
    person: Person,
) -> Result<(), ApproveError> {
    let ApprovalQuestion { id, digest, .. } = question;
    watching.send(Input::Approval(ApprovalInput::Answer(ApproverAnswer {
        id: *id,
        digest: digest.clone(),
        decision: ApproverDecision::Approve,
        scope,
        proof: person.proof(),
        break_glass: None,
        token: None,
    })));
    let answered = await_event(watching, |event| match event {
        ApprovalEvent::Taken(taken) if taken == *id => Some(Ok(())),
        ApprovalEvent::Refused { reason, .. } => Some(Err(ApproveError::Refused(reason))),
        _ => None,
    });
    answered.await.ok_or(ApproveError::NoQuestion(person.uid))?
}

/// Returns which account has given its password, and to what.
fn person(polkit: Option<&str>, sudo: Option<&str>) -> Result<Person, ApproveError> {
    let (method, uid) = match (polkit, sudo) {
        (Some(_), Some(_)) => return Err(ApproveError::TwoPeople),
        (Some(uid), None) => (PasswordMethod::Polkit, uid),
        (None, Some(uid)) => (PasswordMethod::Sudo, uid),
        (None, None) => return Err(ApproveError::NoPerson),
    };
    // A password of root is no proof that a person is there.
    let uid = uid.parse().ok().filter(|uid| *uid != 0).ok_or(ApproveError::NoPerson)?;
    Ok(Person { uid: Uid::from_raw(uid), method })
}

/// Returns what `select` makes of the first event that it accepts. `None` if there is none in time.
async fn await_event<T>(watching: &mut Exchange, select: impl Fn(ApprovalEvent) -> Option<T>) -> Option<T> {
    let waiting = async {
        loop {
            match watching.next().await {
                ExchangeStep::Event(Event::Approval(event)) => {
                    if let Some(selected) = select(event) {
                        return Some(selected);
                    }
                }
                ExchangeStep::Event(_) => {}
                ExchangeStep::Finished(_) => return None,
            }
        }
    };
    tokio::time::timeout(ANSWER_TIMEOUT, waiting).await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_program_names_a_person_who_is_not_root() {
        for (polkit, sudo, expected) in [
            (Some("1000"), None, Some(1_000)),
            (None, Some("1000"), Some(1_000)),
            (Some("1000"), Some("1000"), None),
            (None, None, None),
            (Some("0"), None, None),
            (None, Some("0"), None),
            (None, Some("ann"), None),
            (None, Some(""), None),
            (None, Some("-1"), None),
        ] {
            let found = person(polkit, sudo).ok().map(|person| person.uid.as_raw());
            assert_eq!(found, expected, "{polkit:?} {sudo:?}");
        }
    }

    #[test]
    fn no_option_that_names_a_file_is_accepted() {
        for words in [
            vec!["lockhouse", APPROVE, "tickets.create {}", "once", "0", "7", "9f86"],
            vec!["lockhouse", ACCEPT_POLICY, "tickets: create: allow", "9f86"],
            vec!["lockhouse", ACCEPT_TOOLS, "tickets", "1 tools: create (changed)", "9f86"],
        ] {
            assert!(Command::try_parse_from(&words).is_ok(), "control");
            for option in ["--config=/x", "--policy=/x", "--account=ann", "--trust-owner=1000"] {
                let words = words.iter().chain([&option]);
                assert!(Command::try_parse_from(words).is_err(), "{option}");
            }
        }
    }
}
