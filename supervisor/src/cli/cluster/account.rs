//! `lockhouse cluster account`: makes the account of a cluster in NATS, or brings it up to date.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_base::files;
use lockhouse_cluster::{AUDITOR, HostName, NatsAccount};

use crate::cli::{UNAVAILABLE, USAGE, print_error};

/// Name of the file with the configuration of a NATS server.
const CONFIGURATION: &str = "nats-server.conf";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The names of the hosts, with --update of those that are new
    #[arg(required_unless_present = "update", value_name = "HOST")]
    hosts: Vec<HostName>,
    /// The folder into which the files are written; files that exist are not replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep the hosts and keys of nats-server.conf in the folder, add the new hosts, and give all the permissions of this version
    #[arg(long)]
    update: bool,
}

pub(super) fn account(arguments: &Arguments) -> ExitCode {
    let Arguments { hosts, out, update } = arguments;
    let configuration = out.join(CONFIGURATION);
    let made = match update {
        true => std::fs::read_to_string(&configuration)
            .map_err(|error| named(&configuration, error))
            .and_then(|text| NatsAccount::update(&text, hosts).map_err(|error| named(&configuration, error))),
        false => NatsAccount::generate(hosts).map_err(io::Error::other),
    };
    let account = match made {
        Ok(account) => account,
        Err(error) => return print_error(&error, USAGE),
    };
    let seed = |(host, seed): &(HostName, String)| (out.join(format!("{host}.nkey")), format!("{seed}\n"));
    let mut written: Vec<(PathBuf, String)> = account.seeds.iter().map(seed).collect();
    let new = written.iter().map(|(path, _)| path).chain((!update).then_some(&configuration));
    if let Some(path) = new.into_iter().find(|path| path.exists()) {
        let hint = if *update { "" } else { "; --update changes an account" };
        let error = io::Error::other(format!("{} exists, and nothing was written{hint}", path.display()));
        return print_error(&error, USAGE);
    }
    // Last, so that it names no key that is not there.
    written.push((configuration, account.configuration.clone()));
    for (path, content) in &written {
        let write = if path.exists() { files::replace_content } else { files::replace_durably };
        if let Err(error) = write(path, content.as_bytes()) {
            return print_error(&named(path, error), UNAVAILABLE);
        }
        println!("{}", path.display());
    }
    print_next_steps(&account, *update);
    ExitCode::SUCCESS
}

fn named(path: &std::path::Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

fn print_next_steps(account: &NatsAccount, update: bool) {
    let start = match update {
        true => format!(
            "Give each NATS server {CONFIGURATION}, and let it reload (`nats-server --signal reload`)."
        ),
        false => format!("Start NATS with {CONFIGURATION}."),
    };
    println!("\n{start}");
    if !account.seeds.is_empty() {
        println!(
            "Give each of these hosts its own file, readable for the account of its service alone:\n\
             [cluster]\nnkey = \"${{file:/etc/lockhouse/HOST.nkey}}\""
        );
    }
    if !update {
        println!(
            "\nKeep {AUDITOR}.nkey elsewhere: `lockhouse cluster audit` reads the copies of all audit logs with it."
        );
    }
}
