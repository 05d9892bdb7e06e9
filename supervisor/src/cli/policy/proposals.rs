//! `lockhouse policy propose`, `proposals` and `accept`: the policy that a person proposes for the engine of the system.

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_base::text_files::read_source;
use lockhouse_config::{self as config, ConfigError, Files, SystemEngine};
use lockhouse_messages::{OperatorRequest, OperatorResponse, PolicyProposal, Presence, ProposedChange};
use nix::unistd::geteuid;

use crate::cli::account_name::account_name;
use crate::cli::approvals::password::{PasswordSubject, approve_on_terminal};
use crate::cli::control_client::{engine_id, print_refusal, request_one};
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error, table};

/// Number of characters of a digest in a list.
const DIGEST_CHARS: usize = 16;

/// Options of `lockhouse policy propose`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Proposed {
    /// The policy file [default: that of this user]
    file: Option<PathBuf>,
    /// Take the proposal back
    #[arg(long, conflicts_with = "file")]
    withdraw: bool,
}

/// Options of `lockhouse policy accept`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Accepted {
    /// The digest that `lockhouse policy proposals` shows, or its beginning
    #[arg(value_parser = parse_digest)]
    digest: String,
}

fn parse_digest(text: &str) -> Result<String, &'static str> {
    let is_digest = text.len() >= DIGEST_CHARS && text.chars().all(|letter| letter.is_ascii_hexdigit());
    if is_digest { Ok(text.to_lowercase()) } else { Err("expected at least 16 hexadecimal digits") }
}

/// Proposes a policy for the engine of the system that serves this person, and shows what it changes.
pub(super) async fn propose(files: &Files, arguments: &Proposed) -> Result<ExitCode, ExitCode> {
    let engine = SystemEngine::of_this_account().map_err(|error| print_config_error(&error))?;
    let Some(engine) = engine else {
        eprintln!(
            "lockhouse: no engine of the system serves this account: its policy file is in force itself"
        );
        return Err(ExitCode::from(USAGE));
    };
    let text = match arguments.withdraw {
        true => None,
        false => {
            Some(read_policy(files, arguments.file.clone()).map_err(|error| print_config_error(&error))?)
        }
    };
    let proposal = ask(engine, OperatorRequest::ProposePolicy { text }).await?;
    if arguments.withdraw {
        println!("the proposal is taken back: the approved policy is in force");
        return Ok(ExitCode::SUCCESS);
    }
    print_changes(&proposal);
    if !proposal.changes.is_empty() {
        println!(
            "What it denies is denied from now on. What it permits takes effect when it is accepted: {}",
            how_to_accept(&proposal)
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the proposals of this person, or of all people for root.
pub(super) async fn proposals() -> Result<ExitCode, ExitCode> {
    let mut count = 0;
    for engine in SystemEngine::operated_by_this_account() {
        let Ok(proposal) = ask(engine, OperatorRequest::ShowProposal).await else { continue };
        if proposal.digest.is_some() {
            count += 1;
            println!("{} proposes {}:", account_name(engine.person().as_raw()), short(&proposal));
            print_changes(&proposal);
        }
    }
    if count == 0 {
        println!("there is no proposal");
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the proposal with this digest the policy of the engine to which it was sent.
pub(super) async fn accept(arguments: &Accepted) -> Result<ExitCode, ExitCode> {
    for engine in SystemEngine::operated_by_this_account() {
        let Ok(proposal) = ask(engine, OperatorRequest::ShowProposal).await else { continue };
        let digest = proposal.digest.as_ref().filter(|digest| digest.starts_with(&arguments.digest));
        let Some(digest) = digest.cloned() else { continue };
        if !geteuid().is_root() {
            return accept_with_proof(&proposal).await;
        }
        let person = account_name(engine.person().as_raw());
        let request = OperatorRequest::AcceptProposal { digest, proof: None };
        return match request_one(engine_id(engine), &request).await {
            Ok(OperatorResponse::Reloaded(report)) => {
                println!("the policy of {person} is in force (generation {})", report.generation);
                Ok(ExitCode::SUCCESS)
            }
            reply => Err(print_refusal(reply)),
        };
    }
    eprintln!(
        "lockhouse: no engine has a proposal with this digest: `lockhouse policy proposals` lists them"
    );
    Err(ExitCode::from(USAGE))
}

/// Accepts a proposal of the person who runs this command, if a password is enough.
async fn accept_with_proof(proposal: &PolicyProposal) -> Result<ExitCode, ExitCode> {
    if proposal.presence != Presence::Password {
        eprintln!("lockhouse: this command cannot accept it: {}", how_to_accept(proposal));
        return Err(ExitCode::from(USAGE));
    }
    print_changes(proposal);
    match approve_on_terminal(PasswordSubject::Policy(proposal)).await {
        Ok(()) => {
            println!("the policy is in force");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(print_error(&error, UNAVAILABLE)),
    }
}

/// Returns who can accept a proposal, and how.
fn how_to_accept(proposal: &PolicyProposal) -> String {
    let accept = format!("lockhouse policy accept {}", short(proposal));
    let by_root = format!("an administrator accepts it with sudo {accept}");
    match proposal.presence {
        Presence::None => by_root,
        Presence::Password => format!("you accept it with your password, {accept}; or {by_root}"),
        Presence::Key => format!(
            "you accept it with your key on the page (`lockhouse page`, Approvals, digest {}); or {by_root}",
            short(proposal)
        ),
    }
}

fn read_policy(files: &Files, file: Option<PathBuf>) -> Result<String, ConfigError> {
    let path = file.map_or_else(|| config::policy_path(files), Ok)?;
    Ok(read_source(&path)?.text)
}

/// Sends a request whose answer is a proposal. Prints why there is none.
async fn ask(engine: SystemEngine, request: OperatorRequest) -> Result<PolicyProposal, ExitCode> {
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Proposal(proposal)) => Ok(proposal),
        reply => Err(print_refusal(reply)),
    }
}

fn print_changes(proposal: &PolicyProposal) {
    if proposal.changes.is_empty() {
        return println!("it is equivalent to the approved policy");
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let row = |change: &ProposedChange| {
        vec![change.table.clone(), change.entry.clone(), value(&change.approved), value(&change.proposed)]
    };
    let (widening, narrowing): (Vec<_>, Vec<_>) = proposal.changes.iter().partition(|change| change.widens);
    for (title, changes) in [("It may permit more:", widening), ("It permits less:", narrowing)] {
        if !changes.is_empty() {
            let rows: Vec<Vec<String>> = changes.into_iter().map(row).collect();
            println!("{title}\n{}", table::render(&["table", "key", "approved", "proposed"], &rows));
        }
    }
    if proposal.left_out > 0 {
        println!("{} more differences are not shown.", proposal.left_out);
    }
}

/// Returns the digest of a proposal as a list shows it.
fn short(proposal: &PolicyProposal) -> &str {
    let digest = proposal.digest.as_deref().unwrap_or_default();
    digest.get(..DIGEST_CHARS).unwrap_or(digest)
}
