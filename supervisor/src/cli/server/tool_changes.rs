//! `lockhouse server diff` and `lockhouse server accept`: review the tools of an upstream server whose
//! definitions differ from those that the user accepted before.
//!
//! `accept` connects to the server again, and the server may then return other definitions than those that
//! `diff` showed. So `accept` either requires the digest that `diff` printed, or shows the definitions that
//! it received and asks for confirmation.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_protocol::{ServerName, ToolName};
use lockhouse_upstream::{ChangedTool, Pins, ToolReview, Upstreams};
use nix::unistd::Uid;
use serde_json::json;
use similar::TextDiff;

use super::find;
use crate::cli::DIGEST_IS_STALE;
use crate::cli::command_audit_log::CommandAuditLog;
use crate::cli::command_error::CommandError;
use crate::cli::confirmation::ask_yes_no;
use crate::cli::terminal::{for_stdout, sanitize, sanitize_lines};
use lockhouse_config::{Files, Settings, SystemEngine, shell_quote};

/// The number of unchanged lines that are shown before and after a change of a tool definition.
const CONTEXT_LINES: usize = 2;
/// The maximum number of names of removed tools that are printed.
const REMOVED_NAMED_MAX: usize = 20;

/// Whose engine a command is about.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct Person {
    /// The user id of the person whose engine of the system has the server (root)
    #[arg(long, value_name = "UID")]
    person: Option<u32>,
}

impl Person {
    /// Returns the engine of the system that has the servers; `None` if the configuration of this account has them.
    pub(super) fn engine(self) -> Option<SystemEngine> {
        let named = self.person.map(|person| SystemEngine::of_person(Uid::from_raw(person)));
        named.or_else(|| SystemEngine::of_this_account().ok().flatten())
    }
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DiffArguments {
    /// The name of the server
    pub(super) name: String,
    /// Show only these tools
    #[arg(conflicts_with = "person")]
    pub(super) tools: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) person: Person,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AcceptArguments {
    /// The name of the server
    pub(super) name: String,
    /// Accept only these tools
    #[arg(conflicts_with = "person")]
    pub(super) tools: Vec<String>,
    /// The digest that `lockhouse server diff` printed for the same server and tools: other definitions are not
    /// accepted
    #[arg(long)]
    pub(super) digest: Option<String>,
    #[command(flatten)]
    pub(super) person: Person,
}

/// The current tools of an upstream server, and how their definitions differ from those that the user
/// accepted before.
pub(in crate::cli) struct OfferedTools {
    name: ServerName,
    /// The tools that the user selected. An empty list selects all tools.
    only: Vec<ToolName>,
    catalogue: Arc<Catalogue>,
    pins: Pins,
    review: ToolReview,
}

pub(super) async fn diff(files: &Files, arguments: &DiffArguments) -> Result<ExitCode, ExitCode> {
    let offered = OfferedTools::fetch(files, &arguments.name, &arguments.tools).await;
    let offered = offered.map_err(|error| error.print())?;
    let OfferedTools { name, review, .. } = &offered;
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", offered.to_json())));
        return Ok(ExitCode::SUCCESS);
    }
    print_changes(review);
    match review.changes.is_empty() {
        true => println!("The tools of {name} have not changed."),
        false => {
            println!("To accept exactly these definitions, run:\n\n    {}", accept_command(files, &offered))
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn accept(files: &Files, arguments: &AcceptArguments) -> Result<ExitCode, ExitCode> {
    let print = |error: CommandError| error.print();
    let offered = OfferedTools::fetch(files, &arguments.name, &arguments.tools).await.map_err(print)?;
    let OfferedTools { name, review, .. } = &offered;
    match &arguments.digest {
        Some(digest) => offered.check_digest(digest).map_err(print)?,
        None if review.changes.is_empty() => {}
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            print_changes(review);
            if !ask_yes_no(&format!("Accept these tool definitions of {name}?")) {
                eprintln!("lockhouse: nothing was accepted");
                return Ok(ExitCode::SUCCESS);
            }
        }
        None => {
            return Err(print(CommandError::usage(format!(
                "nothing was accepted: confirmation needs a terminal; `lockhouse server diff {name}` shows the tools, \
                 and prints the command that accepts them"
            ))));
        }
    }
    println!("{}", offered.accept(files).map_err(print)?);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print_changes(review: &ToolReview) {
    if let Some(error) = &review.unreadable {
        eprintln!("lockhouse: {}; all tools are shown", sanitize(&error.to_string()));
    }
    for change @ ChangedTool { tool, kind, before, .. } in &review.changes {
        match (kind, before) {
            (_, Some((since, _))) => println!("{tool}: changes since it was accepted on {since}:"),
            (ToolChange::NotComparable, None) => println!("{tool}: current definition:"),
            (_, None) => println!("{tool}: new since the tools were accepted:"),
        }
        println!("{}", sanitize_lines(&unified_diff(change)));
    }
    if !review.removed.is_empty() {
        let (count, named) =
            (review.removed.len(), &review.removed[..review.removed.len().min(REMOVED_NAMED_MAX)]);
        let more = if named.len() < count { ", …" } else { "" };
        let gone = format!("{count} tools ({}{more})", sanitize(&named.join(", ")));
        println!(
            "Accepted before, but no longer offered: {gone}. A tool that returns after all tools were accepted counts as new.\n"
        );
    }
}

/// Returns the change of a tool's definition as a unified diff.
fn unified_diff(ChangedTool { before, after, .. }: &ChangedTool) -> String {
    let before = before.as_ref().map(|(_, before)| before.as_str()).unwrap_or_default();
    TextDiff::from_lines(before, after).unified_diff().context_radius(CONTEXT_LINES).to_string()
}

/// Returns the `lockhouse server accept` command line that accepts exactly the definitions that were shown.
fn accept_command(files: &Files, offered: &OfferedTools) -> String {
    let OfferedTools { name, only, review, .. } = offered;
    let mut words = vec!["lockhouse".into(), "server".into(), "accept".into(), name.to_string()];
    words.extend(only.iter().map(ToString::to_string));
    words.extend(["--digest".to_owned(), review.digest.clone()]);
    for (option, path) in files.options().filter(|(option, _)| *option != "--policy") {
        words.extend([option.to_owned(), shell_quote(&path.display().to_string())]);
    }
    words.join(" ")
}

impl OfferedTools {
    /// Connects to an upstream server and compares its tools with the definitions that the user accepted before.
    /// `tools` selects tools by name; an empty list selects all.
    pub(in crate::cli) async fn fetch(
        files: &Files,
        name: &str,
        tools: &[String],
    ) -> Result<Self, CommandError> {
        let settings = Settings::load(files)?;
        let (name, server) = find(&settings, name)?;
        let pins = Pins::new(settings.engine.places.pins_file(name, server));
        let upstreams = Upstreams::connect([(name.clone(), server.clone())].into(), &settings.engine.places);
        let offer = match upstreams.get(name) {
            Some(connection) => connection.connected_server().await.map_err(|failure| failure.message),
            None => Err(format!("there is no server {name}")),
        };
        upstreams.close().await;
        let catalogue = offer.map_err(CommandError::unavailable)?.catalogue.clone();
        let only = parse_tools(name, &catalogue, tools)?;
        let review = pins.review(name, &catalogue, &only);
        Ok(Self { name: name.clone(), only, catalogue, pins, review })
    }

    pub(in crate::cli) fn to_json(&self) -> serde_json::Value {
        review_to_json(self.name.as_str(), &self.review)
    }

    /// Checks that the tools are those that were shown with this digest.
    pub(in crate::cli) fn check_digest(&self, digest: &str) -> Result<(), CommandError> {
        (digest == self.review.digest).then_some(()).ok_or_else(|| stale(self.name.as_str()))
    }

    /// Records in the audit log that the user accepts the definitions, and accepts them. Returns what was done, as a
    /// sentence.
    pub(in crate::cli) fn accept(&self, files: &Files) -> Result<String, CommandError> {
        let Self { name, only, catalogue, pins, review } = self;
        if review.changes.is_empty() && review.unreadable.is_none() {
            return Ok(format!("The tools of {name} have not changed."));
        }
        let accepted = catalogue.tools.iter().filter(|tool| only.is_empty() || only.contains(&tool.name));
        let tools: Vec<String> = accepted.map(|tool| tool.name.to_string()).collect();
        let log = CommandAuditLog::open(files);
        log.and_then(|log| log.definitions_accepted(name, &tools, &review.digest)).map_err(|reason| {
            CommandError::unavailable(format!("nothing of {name} was accepted: {reason}"))
        })?;
        let accepted = pins.accept(catalogue, only).map_err(CommandError::unavailable)?;
        Ok(format!("Accepted {accepted} tools of {name}."))
    }
}

/// Returns a review of the tools of a server as JSON, for the page and for programs.
pub(in crate::cli) fn review_to_json(name: &str, review: &ToolReview) -> serde_json::Value {
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let row = |change: &ChangedTool| {
        let (since, before) = change.before.as_ref().map(|(since, before)| (since, parsed(before))).unzip();
        let change_kind = match change.kind {
            ToolChange::Definition => "changed",
            ToolChange::New => "new",
            ToolChange::NotComparable => "not_comparable",
        };
        json!({
            "tool": change.tool.as_str(), "change": change_kind, "since": since,
            "before": before, "after": parsed(&change.after), "diff": unified_diff(change),
        })
    };
    let rows: Vec<_> = review.changes.iter().map(row).collect();
    json!({
        "server": name, "changes": rows, "gone": review.removed, "digest": review.digest,
        "error": review.unreadable.as_ref().map(ToString::to_string),
    })
}

/// Returns the error for a digest of other tools.
pub(super) fn stale(name: &str) -> CommandError {
    CommandError::Stale(format!(
        "nothing was accepted: the tools of {name} {DIGEST_IS_STALE}, or it is the digest of other tools; \
         `lockhouse server diff {name}` shows the current ones"
    ))
}

fn parse_tools(
    name: &ServerName,
    catalogue: &Catalogue,
    tools: &[String],
) -> Result<Vec<ToolName>, CommandError> {
    let known = |tool: &String| {
        let known = ToolName::new(tool.as_str()).ok().filter(|tool| catalogue.tool(tool).is_some());
        let unknown =
            || format!("{name} has no tool {tool:?}; `lockhouse server diff {name}` shows what changed");
        known.ok_or_else(|| CommandError::usage(unknown()))
    };
    tools.iter().map(known).collect()
}
