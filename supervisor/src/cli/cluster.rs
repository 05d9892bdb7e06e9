//! `lockhouse cluster`: the hosts that serve the same AI clients, and their account in NATS.

mod account;
mod audit;

use std::collections::BTreeSet;
use std::process::ExitCode;

use lockhouse_link::OperatorError;
use lockhouse_messages::{HostListing, ListedHost, OperatorRequest, OperatorResponse};

use super::{UNAVAILABLE, all_users, control_client, table};

/// Number of digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the hosts of the cluster, as the service on this machine knows them
    Status {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Let the host on this machine take no new work: it is not ready, and serves what it has
    Drain {
        /// Let it take new work again
        #[arg(long)]
        undo: bool,
        /// Print the hosts as JSON
        #[arg(long)]
        json: bool,
    },
    /// End the service on this machine when its runs have ended, at the latest after drain_seconds of [service]
    Leave,
    /// Verify the copies of the audit logs of all hosts, which `audit_copies` of [cluster] makes
    Audit(audit::Arguments),
    /// Make an account in NATS: a server's configuration, and a file with the seed of each host's NKEY and of an auditor's
    Account(account::Arguments),
}

pub(super) async fn cluster(command: Command) -> ExitCode {
    match command {
        Command::Status { json } => status(json).await,
        Command::Drain { undo, json } => drain(undo, json).await,
        Command::Leave => leave().await,
        Command::Audit(arguments) => audit::audit(&arguments).await,
        Command::Account(arguments) => account::account(&arguments),
    }
}

async fn status(as_json: bool) -> ExitCode {
    let Some((_, listing)) = member().await else { return no_member() };
    print_listing(&listing, as_json);
    match problems(&listing).is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

async fn drain(undo: bool, as_json: bool) -> ExitCode {
    let Some((pid, _)) = member().await else { return no_member() };
    match control_client::request_one(pid, &OperatorRequest::DrainHost { undo }).await {
        Ok(OperatorResponse::Hosts(listing)) => {
            print_listing(&listing, as_json);
            ExitCode::SUCCESS
        }
        other => not_done(other),
    }
}

/// Waits until the process of the service has ended.
async fn leave() -> ExitCode {
    let Some((pid, listing)) = member().await else { return no_member() };
    match control_client::request_one(pid, &OperatorRequest::LeaveCluster).await {
        Ok(OperatorResponse::Stopping) => {}
        other => return not_done(other),
    }
    if let Some(ListedHost { name, runs, .. }) = listing.hosts.iter().find(|host| host.is_this) {
        println!("{name} leaves the cluster when its {runs} runs have ended.");
    }
    // The service limits the time.
    while !all_users::stop::wait_ended(pid).await {}
    println!("It has left.");
    ExitCode::SUCCESS
}

/// Returns the process of this machine that is a host of a cluster, and the hosts that it knows.
pub(super) async fn member() -> Option<(u32, HostListing)> {
    let answers = control_client::request_all(&OperatorRequest::ListHosts).await;
    answers.into_iter().find_map(|(pid, response)| match response {
        OperatorResponse::Hosts(listing) if !listing.hosts.is_empty() => Some((pid, listing)),
        _ => None,
    })
}

fn no_member() -> ExitCode {
    eprintln!(
        "lockhouse: no service on this machine is part of a cluster; docs/cluster.md describes [cluster]"
    );
    ExitCode::from(UNAVAILABLE)
}

/// Prints why a service has not done what it was asked for.
fn not_done(answer: Result<OperatorResponse, OperatorError>) -> ExitCode {
    let reason = match answer {
        Ok(OperatorResponse::Refused { reason }) | Err(OperatorError::Refused(reason)) => reason,
        Ok(_) | Err(OperatorError::OtherVersion) => "the service has another version".to_owned(),
        Err(OperatorError::NoAnswer) => "the service does not answer".to_owned(),
    };
    eprintln!("lockhouse: {reason}");
    ExitCode::from(UNAVAILABLE)
}

fn print_listing(listing: &HostListing, as_json: bool) {
    if as_json {
        println!("{:#}", serde_json::to_value(listing).unwrap_or_default());
        return;
    }
    let head = [
        "host",
        "state",
        "address",
        "version",
        "runs",
        "free",
        "sessions",
        "configuration",
        "policy",
        "heard",
    ];
    let row = |host: &ListedHost| {
        let short = |digest: &str| digest.chars().take(DIGEST_DIGITS).collect::<String>();
        let this = if host.is_this { " (this)" } else { "" };
        vec![
            format!("{}{this}", host.name),
            host.state.clone(),
            host.address.clone(),
            host.version.clone(),
            host.runs.to_string(),
            host.free.to_string(),
            host.sessions.to_string(),
            short(&host.configuration),
            short(&host.policy),
            format!("{} s", host.heard_s),
        ]
    };
    println!("{}", table::render(&head, &listing.hosts.iter().map(row).collect::<Vec<_>>()));
    for problem in problems(listing) {
        println!("{problem}");
    }
}

/// Returns what a person should know about, one sentence each.
pub(super) fn problems(listing: &HostListing) -> Vec<String> {
    let mut problems = Vec::new();
    let policies: BTreeSet<&str> = listing.hosts.iter().map(|host| host.policy.as_str()).collect();
    if policies.len() > 1 {
        problems.push(
            "The hosts have different policies: a call that one permits, another may refuse.".to_owned(),
        );
    }
    problems.extend(
        listing.problem.as_ref().map(|problem| format!("This host cannot renew its lease: {problem}.")),
    );
    problems
}
