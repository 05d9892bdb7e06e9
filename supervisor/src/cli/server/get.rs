//! `lockhouse server get`: shows one upstream server in detail.

use std::process::ExitCode;

use lockhouse_config::{self as config, Files, UnresolvedServer};
use lockhouse_gate::unconditional_effect;
use lockhouse_policies::{Effect, Policy, visible_text};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Connection, ConnectionState, Upstreams};

use super::status_report::StatusReport;
use super::{connection_progress, find, load, redacted_definition};
use crate::cli::print_config_error;
use crate::cli::terminal::{for_stdout, sanitize};

/// Maximum number of characters of a server's instructions that are shown.
const INSTRUCTIONS_CHARS_MAX: usize = 4_000;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the server
    name: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Only show the configuration, without connecting
    #[arg(long)]
    no_connect: bool,
}

pub(super) async fn get(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let settings = load(files)?;
    let (name, server) = find(&settings, &arguments.name).map_err(|unknown| unknown.print())?;
    let policy = config::load_policy(files).map_err(|error| print_config_error(&error))?;
    let chosen = if arguments.no_connect { None } else { Some((name.clone(), server.clone())) };
    let upstreams = Upstreams::connect(chosen.into_iter().collect(), &settings.engine.places);
    connection_progress::connect_all(&upstreams).await;
    let connection = upstreams.get(name);
    let report = match connection {
        Some(connection) => StatusReport::connected(name.as_str(), server, connection),
        None => StatusReport::configured(name.as_str(), server),
    };
    let offered = connection.and_then(|connection| tools_by_decision(&policy, name, connection));
    let instructions = connection.and_then(|connection| instructions(connection));
    upstreams.close().await;
    let defined =
        redacted_definition::describe(server, &UnresolvedServer::load(files, &arguments.name, server));
    if arguments.json {
        let mut whole = report.to_json();
        whole["definition"] = defined.into();
        whole["instructions"] = instructions.into();
        whole["permitted_tools"] = offered.as_ref().map(|offered| offered.permitted.clone()).into();
        whole["asked_tools"] = offered.as_ref().map(|offered| offered.asked.clone()).into();
        whole["depending_tools"] = offered.as_ref().map(|offered| offered.depends.clone()).into();
        whole["not_accepted_tools"] = offered.as_ref().map(|offered| offered.not_accepted.clone()).into();
        whole["denied_tools"] = offered.map(|offered| offered.denied).into();
        println!("{}", for_stdout(&format!("{whole:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{name}");
    print_line("origin", &server.origin);
    for (key, value) in redacted_definition::to_config_lines(server, &defined) {
        print_line(&key, &value);
    }
    for (key, value) in report.lines() {
        print_line(key, &value);
    }
    if let Some(ToolsByDecision { permitted, asked, depends, denied, not_accepted }) = offered {
        print_line("permitted", &format_names(&permitted));
        if !asked.is_empty() {
            print_line("requires approval", &format_names(&asked));
        }
        if !depends.is_empty() {
            print_line("depends on arguments", &format_names(&depends));
        }
        print_line("denied", &format_names(&denied));
        if !not_accepted.is_empty() {
            print_line("not accepted", &format_names(&not_accepted));
        }
    }
    if let Some(instructions) = instructions {
        print_line("instructions", &format!("(the server's own words) {instructions}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the instructions that a connected server gives, without control and invisible characters.
fn instructions(connection: &Connection) -> Option<String> {
    let ConnectionState::Connected(offer) = connection.state() else { return None };
    let instructions = offer.info()?.instructions?;
    let bounded: String = instructions.chars().take(INSTRUCTIONS_CHARS_MAX).collect();
    Some(visible_text(&bounded).into_owned())
}

/// The names of a server's tools, grouped by what the policy decides about calls of each tool.
struct ToolsByDecision {
    permitted: Vec<String>,
    /// Tools of which each call requires approval.
    asked: Vec<String>,
    /// Tools for which the decision depends on the arguments of the call.
    depends: Vec<String>,
    denied: Vec<String>,
    /// Tools whose definitions differ from those that the user accepted. Each of them is also in the group of its
    /// decision.
    not_accepted: Vec<String>,
}

fn tools_by_decision(policy: &Policy, name: &ServerName, connection: &Connection) -> Option<ToolsByDecision> {
    let known = connection.known_catalogue()?;
    let names = |wanted: Option<Effect>| {
        let tools = known.tools.iter().map(|tool| &tool.name);
        tools
            .filter(|tool| unconditional_effect(policy, name, tool) == wanted)
            .map(ToString::to_string)
            .collect()
    };
    let [permitted, asked, denied] = [Effect::Allow, Effect::Ask, Effect::Deny].map(Some).map(&names);
    let depends = names(None);
    let changed = known.tools.iter().filter(|tool| tool.change.is_some());
    let not_accepted = changed.map(|tool| tool.name.to_string()).collect();
    Some(ToolsByDecision { permitted, asked, depends, denied, not_accepted })
}

/// The maximum number of tool names that are printed on one line. `lockhouse tools list` shows all tools.
const NAMED_MAX: usize = 12;

fn format_names(tools: &[String]) -> String {
    match tools.len() {
        0 => "none".into(),
        count if count <= NAMED_MAX => format!("{count}: {}", tools.join(", ")),
        count => format!("{count}: {}, …", tools[..NAMED_MAX].join(", ")),
    }
}

fn print_line(key: &str, value: &str) {
    println!("  {key:23}{}", sanitize(&value.replace('\n', " ")));
}
