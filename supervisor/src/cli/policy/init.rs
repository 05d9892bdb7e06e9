//! `lockhouse policy init`: generates a policy from the tools of the configured servers.

use std::path::Path;
use std::process::ExitCode;

use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_config::{self as config, Files, Settings};
use lockhouse_gate::Gate;
use lockhouse_policies::{Policy, ServerOffer, ToolOffer, render_template};

use crate::cli::command_audit_log::FileChange;
use crate::cli::unavailable_servers::describe_unavailable;
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, start_with};

/// Connects to the configured servers and writes a policy generated from their tools. Replaces an existing policy only
/// with `force`.
pub(super) async fn init(files: &Files, force: bool) -> ExitCode {
    let path = match config::policy_path(files) {
        Ok(path) => path,
        Err(error) => return print_config_error(&error),
    };
    if path.exists() && !force {
        eprintln!("lockhouse: {} exists already; edit it, or replace it with --force", path.display());
        return ExitCode::from(USAGE);
    }
    // The existing policy is not loaded: a missing or invalid one must not prevent generating a new one.
    let supervisor = match Settings::load(files) {
        Ok(settings) => start_with(settings.engine, Policy::empty(), &[]),
        Err(error) => Err(print_config_error(&error)),
    };
    let supervisor = match supervisor {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    gate.upstreams().wait_settled().await;
    let offers = offers(&gate);
    let unavailable = describe_unavailable(gate.upstreams());
    supervisor.close().await;
    for reason in &unavailable {
        eprintln!("lockhouse: skipped a server that is not available: {reason}");
    }
    if offers.is_empty() {
        eprintln!(
            "lockhouse: no server has any tools; name a servers file with --servers, or add [servers.NAME] to the configuration"
        );
        return ExitCode::from(UNAVAILABLE);
    }
    let text = render_template(&offers);
    let change = FileChange {
        target: ChangeTarget::Policy,
        path: path.clone(),
        action: "init",
        through: Channel::Command,
        text: Some(&text),
        only_restricts: false,
    };
    if let Err(error) = change.make(files, || config::write_policy(&path, &text, force)) {
        eprintln!("lockhouse: cannot write {}: {error}", path.display());
        return ExitCode::from(UNAVAILABLE);
    }
    report(&path, &offers);
    ExitCode::SUCCESS
}

/// Prints what a generated policy allows.
pub(in crate::cli) fn report(path: &Path, offers: &[ServerOffer]) {
    let count = |read_only: bool| {
        offers.iter().flat_map(|offer| &offer.tools).filter(|tool| tool.read_only == read_only).count()
    };
    println!(
        "wrote {}: {} tools that are marked read-only are allowed, {} others are listed and denied",
        path.display(),
        count(true),
        count(false)
    );
    println!("review it, and delete the # before each tool that you want to permit");
}

/// Returns the tools of the connected servers, from which a policy is generated.
pub(in crate::cli) fn offers(gate: &Gate) -> Vec<ServerOffer> {
    let mut offers: Vec<ServerOffer> = Vec::new();
    for (server, tool, _) in gate.all_tools() {
        let read_only = tool.is_read_only();
        let offer = ToolOffer { name: tool.name, read_only, summary: tool.summary };
        match offers.iter_mut().find(|known| known.name == *server) {
            Some(known) => known.tools.push(offer),
            None => offers.push(ServerOffer { name: server.clone(), tools: vec![offer] }),
        }
    }
    offers
}
