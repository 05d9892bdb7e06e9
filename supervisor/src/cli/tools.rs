//! `lockhouse tools`

mod shapes;

use std::process::ExitCode;

use lockhouse_catalog::{Told, Tool};
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::{Scope, Search, in_a_word};
use lockhouse_policies::Effect;
use lockhouse_protocol::{Detail, SEARCH_LIMIT_MAX, ServerName, ToolName};
use serde_json::{Value, json};

use super::terminal::for_stdout;
use super::unavailable::unavailable;
use super::{UNAVAILABLE, USAGE, complain, start, table};
use crate::config::{self, Files};

/// What to show.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Every tool of every server, and whether the policy permits it
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Permitted tools that match, best first
    Search {
        /// Words
        query: Vec<String>,
        /// At most so many tools
        #[arg(long, value_name = "N", default_value_t = SEARCH_LIMIT_MAX,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(SEARCH_LIMIT_MAX)))]
        limit: u32,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One tool in full
    Show {
        /// SERVER.TOOL
        name: String,
    },
    /// What results look like of tools that do not say it: names of fields and types that were seen, never values
    Shapes {
        /// SERVER or SERVER.TOOL; all if it is left out
        name: Option<String>,
        /// As JSON: a JSON Schema for each
        #[arg(long)]
        json: bool,
        /// Forget them
        #[arg(long)]
        forget: bool,
    },
}

/// Connects, shows, and closes.
pub(super) async fn tools(files: &Files, command: Command) -> ExitCode {
    let supervisor = match start(files, &[]) {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    let servers = gate.servers();
    if servers.is_empty() {
        eprintln!(
            "lockhouse: no server is configured; name a file with --servers, or add [servers.NAME] to the configuration"
        );
    }
    if !servers.is_empty() && config::find_policy(files).is_none() {
        eprintln!(
            "lockhouse: there is no policy, so every call is denied; write one with `lockhouse policy init`"
        );
    }
    gate.upstreams().settle().await;
    let status = match command {
        Command::List { json } => list(&supervisor, json),
        Command::Search { query, limit, json } => {
            let query = query.join(" ");
            let search = Search { query: &query, limit, detail: Detail::Signatures, language: None };
            let found = gate.search(&Scope::all(servers.clone()), None, search).await.tools;
            if found.is_empty() && !servers.is_empty() {
                eprintln!("lockhouse: no permitted tool matches; `lockhouse tools list` shows all tools");
            }
            print_rows(&found, json, &["server", "tool", "summary"]);
            ExitCode::SUCCESS
        }
        Command::Show { name } => show(&supervisor, &name),
        Command::Shapes { name, json, forget } => shapes::shapes(&supervisor, name.as_deref(), json, forget),
    };
    let unavailable = unavailable(gate.upstreams());
    for reason in &unavailable {
        eprintln!("lockhouse: not available: {reason}");
    }
    supervisor.close().await;
    // What was shown is not all there is.
    if unavailable.is_empty() || status != ExitCode::SUCCESS { status } else { ExitCode::from(UNAVAILABLE) }
}

fn list(supervisor: &Supervisor, as_json: bool) -> ExitCode {
    let gate = supervisor.gate();
    let row = |(server, tool, standing): (&ServerName, Tool, Option<Effect>)| {
        json!({
            "server": server.as_str(), "tool": tool.name.as_str(), "policy": in_a_word(standing),
            "reads_only": tool.is_read_only(), "summary": tool.summary,
        })
    };
    let rows: Vec<Value> = gate.every_tool().into_iter().map(row).collect();
    print_rows(&rows, as_json, &["server", "tool", "policy", "summary"]);
    ExitCode::SUCCESS
}

fn show(supervisor: &Supervisor, name: &str) -> ExitCode {
    let (server, tool) = match parse_name(name) {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    let found =
        gate.every_tool().into_iter().find(|(other, found, _)| **other == server && found.name == tool);
    match found {
        Some((_, found, standing)) => {
            // What a tool answers that nobody may call is nobody's business.
            let connection = gate.upstreams().get(&server).filter(|_| standing != Some(Effect::Deny));
            let observed = connection.and_then(|connection| connection.shapes.observed(&found));
            let asks = standing == Some(Effect::Ask);
            let mut full = found.full(server.as_str(), &Told { asks, observed, language: None });
            full["policy"] = in_a_word(standing).into();
            // For a pin.
            full["definition"] = format!("sha256:{}", found.fingerprint).into();
            println!("{}", for_stdout(&format!("{full:#}")));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("lockhouse: there is no tool {name}; `lockhouse tools list` shows all");
            ExitCode::from(USAGE)
        }
    }
}

/// `SERVER.TOOL`, or `SERVER/TOOL` as denials have it; a tool's name may have both, a server's neither.
pub(super) fn parse_name(name: &str) -> Result<(ServerName, ToolName), ExitCode> {
    let Some((server, tool)) = name.split_once(['.', '/']) else {
        eprintln!("lockhouse: {name:?} is not of the form SERVER.TOOL");
        return Err(ExitCode::from(USAGE));
    };
    let parsed = ServerName::new(server).and_then(|server| Ok((server, ToolName::new(tool)?)));
    parsed.map_err(|invalid| complain(&invalid, USAGE))
}

fn print_rows(rows: &[Value], as_json: bool, columns: &[&str]) {
    if as_json {
        println!("{}", for_stdout(&format!("{:#}", Value::from(rows))));
        return;
    }
    let cell =
        |row: &Value, column: &str| row.get(column).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    println!("{}", table::render(columns, &cells));
}
