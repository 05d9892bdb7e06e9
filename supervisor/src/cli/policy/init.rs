//! `lockhouse policy init`

use std::process::ExitCode;

use lockhouse_catalog::Tool;
use lockhouse_policies::{Effect, Policy, ServerOffer, ToolOffer, render_template};
use lockhouse_protocol::ServerName;

use super::written;
use crate::cli::unavailable::unavailable;
use crate::cli::{UNAVAILABLE, USAGE, complain_config, start_with};
use crate::config::{self, Files, Settings};

/// Writes one from what the servers offer.
pub(super) async fn init(files: &Files, force: bool) -> ExitCode {
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
        Ok(settings) => start_with(settings.engine, Policy::empty(), &[]),
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
    if let Err(error) = written::write(&path, &render_template(&offers), force) {
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

fn offers(tools: Vec<(&ServerName, Tool, Option<Effect>)>) -> Vec<ServerOffer> {
    let mut offers: Vec<ServerOffer> = Vec::new();
    for (server, tool, _) in tools {
        let read_only = tool.is_read_only();
        let offer = ToolOffer { name: tool.name, read_only, summary: tool.summary };
        match offers.iter_mut().find(|known| known.name == *server) {
            Some(known) => known.tools.push(offer),
            None => offers.push(ServerOffer { name: server.clone(), tools: vec![offer] }),
        }
    }
    offers
}
