//! `lockhouse policy`

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use lockhouse_policies::{Call, Effect, Policy, ServerOffer, ToolOffer, explain, render_template};
use lockhouse_protocol::ServerName;

use super::tools::parse_name;
use super::unavailable::unavailable;
use super::{UNAVAILABLE, USAGE, complain_config, load, start_with};
use crate::catalog::Tool;
use crate::config::{self, Files, Settings};

/// What to do with the policy.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Write a policy from what the servers offer: tools that only read are allowed, the rest is listed and denied
    Init {
        /// Replace a policy that exists
        #[arg(long)]
        force: bool,
    },
    /// Check the policy
    Check,
    /// Say what is decided for a tool, and by which rule
    Explain {
        /// SERVER.TOOL
        name: String,
    },
}

/// Does it.
pub(super) async fn policy(files: &Files, command: Command) -> ExitCode {
    match command {
        Command::Init { force } => init(files, force).await,
        Command::Check => match load(files) {
            Ok(_) if config::find_policy(files).is_none() => {
                eprintln!(
                    "lockhouse: there is no policy, so every call is denied; write one with `lockhouse policy init`"
                );
                ExitCode::from(USAGE)
            }
            Ok((settings, policy)) => {
                let named: Vec<&ServerName> = policy.servers().collect();
                println!(
                    "the policy is valid and speaks of {} server{}",
                    named.len(),
                    if named.len() == 1 { "" } else { "s" }
                );
                for server in settings.servers.keys().filter(|server| !named.contains(server)) {
                    println!(
                        "server {server} is configured but not in the policy: every call to it is denied"
                    );
                }
                for server in named.into_iter().filter(|server| !settings.servers.contains_key(server)) {
                    println!("server {server} is in the policy but not configured");
                }
                ExitCode::SUCCESS
            }
            Err(status) => status,
        },
        Command::Explain { name } => match (parse_name(&name), config::load_policy(files)) {
            (Ok((server, tool)), Ok(policy)) => {
                print!("{}", explain(&policy, &Call::new(&server, &tool)));
                ExitCode::SUCCESS
            }
            (Err(status), _) => status,
            (_, Err(error)) => complain_config(&error),
        },
    }
}

async fn init(files: &Files, force: bool) -> ExitCode {
    let path = match config::policy_path(files) {
        Ok(path) => path,
        Err(error) => return complain_config(&error),
    };
    if path.exists() && !force {
        eprintln!("lockhouse: {} exists already; edit it, or replace it with --force", path.display());
        return ExitCode::from(USAGE);
    }
    // The old policy, or the lack of one, must not stand in the way of writing a new one.
    let supervisor = match Settings::load(files) {
        Ok(settings) => start_with(settings, Policy::empty(), &[]),
        Err(error) => Err(complain_config(&error)),
    };
    let supervisor = match supervisor {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    gate.upstreams().settle().await;
    let offers = offers(gate.every_tool());
    let unavailable = unavailable(gate.upstreams());
    supervisor.close().await;
    for reason in &unavailable {
        eprintln!("lockhouse: left out, since it is not available: {reason}");
    }
    if offers.is_empty() {
        eprintln!(
            "lockhouse: no server offers anything; name a file with --servers, or add [servers.NAME] to the configuration"
        );
        return ExitCode::from(UNAVAILABLE);
    }
    if let Err(error) = write(&path, &render_template(&offers), force) {
        eprintln!("lockhouse: cannot write {}: {error}", path.display());
        return ExitCode::from(UNAVAILABLE);
    }
    let count = |read_only: bool| {
        offers.iter().flat_map(|offer| &offer.tools).filter(|tool| tool.read_only == read_only).count()
    };
    println!(
        "wrote {}: {} tools that say they only read are allowed, {} others are listed and denied",
        path.display(),
        count(true),
        count(false)
    );
    println!("read it, and delete the # before each tool that you want to permit");
    ExitCode::SUCCESS
}

fn offers(tools: Vec<(&ServerName, Tool, Effect)>) -> Vec<ServerOffer> {
    let mut offers: Vec<ServerOffer> = Vec::new();
    for (server, tool, _) in tools {
        let offer = ToolOffer { name: tool.name, read_only: tool.read_only, summary: tool.summary };
        match offers.iter_mut().find(|known| known.name == *server) {
            Some(known) => known.tools.push(offer),
            None => offers.push(ServerOffer { name: server.clone(), tools: vec![offer] }),
        }
    }
    offers
}

fn write(path: &std::path::Path, text: &str, force: bool) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)?.write_all(text.as_bytes())
}
