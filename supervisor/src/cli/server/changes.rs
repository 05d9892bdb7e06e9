//! `lockhouse server diff` and `lockhouse server accept`: tools that are not what they were when a person met them.

use std::process::ExitCode;
use std::sync::Arc;

use lockhouse_protocol::{ServerName, ToolName};
use serde_json::json;
use similar::TextDiff;

use super::{find, load};
use crate::audit::digest;
use crate::catalog::Catalogue;
use crate::cli::command_log::CommandLog;
use crate::cli::terminal::{for_stdout, harmless};
use crate::cli::{UNAVAILABLE, USAGE, complain};
use crate::config::Files;
use crate::upstream::{Change, Pins, Upstreams};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DiffArguments {
    /// The server
    name: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AcceptArguments {
    /// The server
    name: String,
    /// Only these tools
    tools: Vec<String>,
}

/// What a server offers now, and what is pinned of it.
struct Offered {
    name: ServerName,
    catalogue: Arc<Catalogue>,
    pins: Pins,
}

pub(super) async fn diff(files: &Files, arguments: &DiffArguments) -> Result<ExitCode, ExitCode> {
    let Offered { name, catalogue, pins } = offered(files, &arguments.name).await?;
    let changes = pins.changes(&catalogue).map_err(|error| complain(&error, UNAVAILABLE))?;
    if arguments.json {
        let row = |change: &Change| {
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
            json!({
                "tool": change.tool.as_str(), "since": change.since,
                "before": parsed(&change.before), "after": parsed(&change.after),
            })
        };
        let rows: Vec<_> = changes.iter().map(row).collect();
        println!("{}", for_stdout(&format!("{:#}", json!({"server": name.as_str(), "changes": rows}))));
        return Ok(ExitCode::SUCCESS);
    }
    if changes.is_empty() {
        println!("The tools of {name} are what they were.");
        return Ok(ExitCode::SUCCESS);
    }
    show(&changes);
    println!("`lockhouse server accept {name}` takes them as they are; add names for some of them.");
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn accept(files: &Files, arguments: &AcceptArguments) -> Result<ExitCode, ExitCode> {
    let Offered { name, catalogue, pins } = offered(files, &arguments.name).await?;
    let only: Vec<ToolName> = arguments.tools.iter().filter_map(|tool| ToolName::new(tool).ok()).collect();
    let unknown = arguments
        .tools
        .iter()
        .find(|tool| !catalogue.tools.iter().any(|known| known.name.as_str() == **tool));
    if let Some(unknown) = unknown {
        eprintln!(
            "lockhouse: {name} has no tool {unknown:?}; `lockhouse server diff {name}` shows what changed"
        );
        return Err(ExitCode::from(USAGE));
    }
    // What is accepted is what was shown: the server is not asked again in between.
    match pins.changes(&catalogue) {
        Ok(mut changes) => {
            changes.retain(|change| only.is_empty() || only.contains(&change.tool));
            show(&changes);
        }
        Err(error) => eprintln!("lockhouse: {error}; all of its tools are pinned anew"),
    }
    record(files, &name, &catalogue, &only)?;
    let accepted = pins.accept(&catalogue, &only).map_err(|error| complain(&error, UNAVAILABLE))?;
    println!("{accepted} tools of {name} are accepted as they are.");
    Ok(ExitCode::SUCCESS)
}

/// What is accepted is in the audit log, or is not accepted.
fn record(
    files: &Files,
    name: &ServerName,
    catalogue: &Catalogue,
    only: &[ToolName],
) -> Result<(), ExitCode> {
    let accepted = catalogue.tools.iter().filter(|tool| only.is_empty() || only.contains(&tool.name));
    let accepted: Vec<(String, &str)> =
        accepted.map(|tool| (tool.name.to_string(), tool.fingerprint.as_str())).collect();
    let lines: String =
        accepted.iter().map(|(tool, fingerprint)| format!("{fingerprint} {tool}\n")).collect();
    let tools: Vec<String> = accepted.into_iter().map(|(tool, _)| tool).collect();
    let log = CommandLog::open(files);
    let recorded = log.and_then(|log| log.definitions_accepted(name, &tools, &digest::of_text(&lines)));
    recorded.map_err(|reason| {
        eprintln!("lockhouse: nothing of {name} was accepted: {reason}");
        ExitCode::from(UNAVAILABLE)
    })
}

fn show(changes: &[Change]) {
    for Change { tool, since, before, after } in changes {
        println!("{tool}, as it was met on {since}, and as it is:");
        let diff = TextDiff::from_lines(before, after);
        let lines = diff.unified_diff().context_radius(CONTEXT_LINES).to_string();
        println!("{}", harmless(&lines));
    }
}

/// Connects to the server.
async fn offered(files: &Files, name: &str) -> Result<Offered, ExitCode> {
    let settings = load(files)?;
    let (name, server) = find(&settings, name)?;
    let Some(path) = settings.places.pins(name, server) else {
        eprintln!(
            "lockhouse: no place to keep what is accepted: set HOME, XDG_STATE_HOME or STATE_DIRECTORY"
        );
        return Err(ExitCode::from(UNAVAILABLE));
    };
    let upstreams = Upstreams::connect([(name.clone(), server.clone())].into(), &settings.places);
    let offer = match upstreams.get(name) {
        Some(connection) => connection.offer().await.map_err(|failure| failure.message),
        None => Err(format!("there is no server {name}")),
    };
    upstreams.close().await;
    match offer {
        Ok(offer) => {
            Ok(Offered { name: name.clone(), catalogue: offer.catalogue.clone(), pins: Pins::at(&path) })
        }
        Err(reason) => {
            eprintln!("lockhouse: {reason}");
            Err(ExitCode::from(UNAVAILABLE))
        }
    }
}
