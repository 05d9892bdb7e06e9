//! `lockhouse cluster`: the hosts that serve the same AI clients, and their account in NATS.

mod audit;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_base::files;
use lockhouse_cluster::{AUDITOR, HostName, NatsAccount};
use lockhouse_messages::{HostListing, ListedHost, OperatorRequest, OperatorResponse};

use super::{UNAVAILABLE, USAGE, control_client, print_error, table};

/// Name of the file with the configuration of a NATS server.
const CONFIGURATION: &str = "nats-server.conf";
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
    /// Verify the copies of the audit logs of all hosts, which `audit_copies` of [cluster] makes
    Audit(audit::Arguments),
    /// Make an account in NATS: a server's configuration, and a file with the seed of each host's NKEY and of an auditor's
    Account {
        /// The names of the hosts
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<HostName>,
        /// The folder into which the files are written; files that exist are not replaced
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

pub(super) async fn cluster(command: Command) -> ExitCode {
    match command {
        Command::Status { json } => status(json).await,
        Command::Audit(arguments) => audit::audit(&arguments).await,
        Command::Account { hosts, out } => account(&hosts, &out),
    }
}

async fn status(as_json: bool) -> ExitCode {
    let mut found = None;
    for (_, response) in control_client::request_all(&OperatorRequest::ListHosts).await {
        if let OperatorResponse::Hosts(listing) = response
            && !listing.hosts.is_empty()
        {
            found = Some(listing);
        }
    }
    let Some(listing) = found else {
        eprintln!(
            "lockhouse: no service on this machine is part of a cluster; docs/cluster.md describes [cluster]"
        );
        return ExitCode::from(UNAVAILABLE);
    };
    if as_json {
        println!("{:#}", serde_json::to_value(&listing).unwrap_or_default());
    } else {
        print_listing(&listing);
    }
    match problems(&listing).is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn print_listing(listing: &HostListing) {
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
fn problems(listing: &HostListing) -> Vec<String> {
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

fn account(hosts: &[HostName], out: &Path) -> ExitCode {
    let Ok(auditor) = AUDITOR.parse::<HostName>() else { return ExitCode::from(USAGE) };
    if hosts.contains(&auditor) {
        let error = std::io::Error::other(format!("{AUDITOR} is the name of the auditor, and not of a host"));
        return print_error(&error, USAGE);
    }
    let account = match NatsAccount::generate(hosts, &auditor) {
        Ok(account) => account,
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    let seeds = account.seeds.iter().map(|(host, seed)| (format!("{host}.nkey"), format!("{seed}\n")));
    let all: Vec<(String, String)> =
        std::iter::once((CONFIGURATION.to_owned(), account.configuration)).chain(seeds).collect();
    if let Some((name, _)) = all.iter().find(|(name, _)| out.join(name).exists()) {
        let error =
            std::io::Error::other(format!("{} exists, and nothing was written", out.join(name).display()));
        return print_error(&error, USAGE);
    }
    for (name, content) in &all {
        if let Err(error) = files::replace(&out.join(name), content.as_bytes()) {
            return print_error(
                &std::io::Error::other(format!("{}: {error}", out.join(name).display())),
                UNAVAILABLE,
            );
        }
        println!("{}", out.join(name).display());
    }
    println!(
        "\nStart NATS with {CONFIGURATION}, and give each host its own file, readable for the account of its service alone:\n\
         [cluster]\nnkey = \"${{file:/etc/lockhouse/HOST.nkey}}\"\n\n\
         Keep {AUDITOR}.nkey elsewhere: `lockhouse cluster audit` reads the copies of all audit logs with it."
    );
    ExitCode::SUCCESS
}
