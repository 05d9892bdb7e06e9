//! `lockhouse server diff` and `lockhouse server accept`: tools that are not as a person accepted them.
//!
//! `accept` connects again, and a server may answer differently then. So it takes the digest that `diff` printed, or it shows
//! what it got and asks.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_protocol::{Failure, ServerName, ToolName};
use lockhouse_upstream::{Change, Pins, Review, Upstreams};
use serde_json::json;
use similar::TextDiff;

use super::{find, load};
use crate::cli::command_log::CommandLog;
use crate::cli::consent::agrees;
use crate::cli::terminal::{for_stdout, harmless};
use crate::cli::{UNAVAILABLE, USAGE, complain};
use crate::config::Files;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;
/// Tools that are no longer offered and are named.
const GONE_NAMED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DiffArguments {
    /// The server
    name: String,
    /// Only these tools
    tools: Vec<String>,
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
    /// What `lockhouse server diff` printed for the same server and tools: nothing else is accepted
    #[arg(long)]
    digest: Option<String>,
}

/// What a server offers now, and how that differs from what was accepted.
struct Offered {
    name: ServerName,
    /// The chosen tools; all if there are none.
    only: Vec<ToolName>,
    catalogue: Arc<Catalogue>,
    pins: Pins,
    review: Review,
}

pub(super) async fn diff(files: &Files, arguments: &DiffArguments) -> Result<ExitCode, ExitCode> {
    let offered = offered(files, &arguments.name, &arguments.tools).await?;
    let Offered { name, review, .. } = &offered;
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", as_json(name, review))));
        return Ok(ExitCode::SUCCESS);
    }
    show(review);
    match review.changes.is_empty() {
        true => println!("The tools of {name} are what they were."),
        false => println!("This accepts them as they are shown here:\n\n    {}", command(files, &offered)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn accept(files: &Files, arguments: &AcceptArguments) -> Result<ExitCode, ExitCode> {
    let offered = offered(files, &arguments.name, &arguments.tools).await?;
    let Offered { name, only, catalogue, pins, review } = &offered;
    match &arguments.digest {
        Some(digest) if *digest == review.digest => {}
        Some(_) => {
            eprintln!(
                "lockhouse: nothing was accepted: the tools of {name} have changed since that digest was printed, or it was \
                 printed for others; `lockhouse server diff {name}` shows them as they are now"
            );
            return Err(ExitCode::from(UNAVAILABLE));
        }
        None if review.changes.is_empty() => {}
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            show(review);
            if !agrees(&format!("Accept these tools of {name} as they are shown?")) {
                eprintln!("lockhouse: nothing was accepted");
                return Ok(ExitCode::SUCCESS);
            }
        }
        None => {
            eprintln!(
                "lockhouse: nothing was accepted: there is nobody to show the tools to; `lockhouse server diff {name}` shows \
                 them, and prints the command that accepts them as they are shown"
            );
            return Err(ExitCode::from(USAGE));
        }
    }
    if review.changes.is_empty() && review.unreadable.is_none() {
        println!("The tools of {name} are what they were.");
        return Ok(ExitCode::SUCCESS);
    }
    record(files, &offered)?;
    let accepted = pins.accept(catalogue, only).map_err(|error| complain(&error, UNAVAILABLE))?;
    println!("{accepted} tools of {name} are accepted as they are.");
    Ok(ExitCode::SUCCESS)
}

/// What is accepted is in the audit log, or is not accepted.
fn record(files: &Files, offered: &Offered) -> Result<(), ExitCode> {
    let Offered { name, only, catalogue, review, .. } = offered;
    let accepted = catalogue.tools.iter().filter(|tool| only.is_empty() || only.contains(&tool.name));
    let tools: Vec<String> = accepted.map(|tool| tool.name.to_string()).collect();
    let recorded =
        CommandLog::open(files).and_then(|log| log.definitions_accepted(name, &tools, &review.digest));
    recorded.map_err(|reason| {
        eprintln!("lockhouse: nothing of {name} was accepted: {reason}");
        ExitCode::from(UNAVAILABLE)
    })
}

fn as_json(name: &ServerName, review: &Review) -> serde_json::Value {
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let row = |change: &Change| {
        let (since, before) = change.before.as_ref().map(|(since, before)| (since, parsed(before))).unzip();
        let change_kind = match change.kind {
            ToolChange::Definition => "changed",
            ToolChange::New => "new",
            ToolChange::NotComparable => "not_comparable",
        };
        json!({
            "tool": change.tool.as_str(), "change": change_kind, "since": since,
            "before": before, "after": parsed(&change.after),
        })
    };
    let rows: Vec<_> = review.changes.iter().map(row).collect();
    json!({
        "server": name.as_str(), "changes": rows, "gone": review.gone, "digest": review.digest,
        "error": review.unreadable.as_ref().map(ToString::to_string),
    })
}

fn show(review: &Review) {
    if let Some(error) = &review.unreadable {
        eprintln!("lockhouse: {}; every tool is shown", harmless(&error.to_string()));
    }
    for Change { tool, kind, before, after } in &review.changes {
        match (kind, before) {
            (_, Some((since, _))) => println!("{tool}, as it was accepted on {since}, and as it is:"),
            (ToolChange::NotComparable, None) => println!("{tool}, as it is:"),
            (_, None) => println!("{tool}, which is new since the tools were accepted:"),
        }
        let before = before.as_ref().map(|(_, before)| before.as_str()).unwrap_or_default();
        let diff = TextDiff::from_lines(before, after);
        let lines = diff.unified_diff().context_radius(CONTEXT_LINES).to_string();
        println!("{}", harmless(&lines));
    }
    if !review.gone.is_empty() {
        let (count, named) = (review.gone.len(), &review.gone[..review.gone.len().min(GONE_NAMED_MAX)]);
        let more = if named.len() < count { ", …" } else { "" };
        let gone = format!("{count} tools ({}{more})", harmless(&named.join(", ")));
        println!(
            "Accepted before, and not offered now: {gone}. One that comes back after all tools were accepted is new.\n"
        );
    }
}

/// What a person copies who agrees with what was shown.
fn command(files: &Files, offered: &Offered) -> String {
    let Offered { name, only, review, .. } = offered;
    let mut words = vec!["lockhouse".into(), "server".into(), "accept".into(), name.to_string()];
    words.extend(only.iter().map(ToString::to_string));
    words.extend(["--digest".to_owned(), review.digest.clone()]);
    let named = files.config.iter().map(|path| ("--config", path));
    for (option, path) in named.chain(files.servers.iter().map(|path| ("--servers", path))) {
        words.extend([option.to_owned(), quoted(&path.display().to_string())]);
    }
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Why the tools of a server are not known.
#[derive(Debug, thiserror::Error)]
enum NoOffer {
    #[error("{}", .0.message)]
    Unavailable(Failure),
    #[error("there is no server {0}")]
    UnknownServer(ServerName),
}

/// Connects to the server.
async fn offered(files: &Files, name: &str, tools: &[String]) -> Result<Offered, ExitCode> {
    let settings = load(files)?;
    let (name, server) = find(&settings, name)?;
    let pins = Pins::at(settings.engine.places.pins(name, server));
    let upstreams = Upstreams::connect([(name.clone(), server.clone())].into(), &settings.engine.places);
    let offer = match upstreams.get(name) {
        Some(connection) => connection.offer().await.map_err(NoOffer::Unavailable),
        None => Err(NoOffer::UnknownServer(name.clone())),
    };
    upstreams.close().await;
    let catalogue = match offer {
        Ok(offer) => offer.catalogue.clone(),
        Err(error) => return Err(complain(&error, UNAVAILABLE)),
    };
    let only = chosen(name, &catalogue, tools)?;
    let review = pins.review(name, &catalogue, &only);
    Ok(Offered { name: name.clone(), only, catalogue, pins, review })
}

fn chosen(name: &ServerName, catalogue: &Catalogue, tools: &[String]) -> Result<Vec<ToolName>, ExitCode> {
    let known = |tool: &String| {
        let known = ToolName::new(tool.as_str()).ok().filter(|tool| catalogue.tool(tool).is_some());
        known.ok_or_else(|| {
            eprintln!(
                "lockhouse: {name} has no tool {tool:?}; `lockhouse server diff {name}` shows what changed"
            );
            ExitCode::from(USAGE)
        })
    };
    tools.iter().map(known).collect()
}
