//! `lockhouse tools`: lists, searches and shows the tools of the configured upstream servers.

mod shapes;

use std::process::ExitCode;

use lockhouse_catalog::{DescribeOptions, Tool};
use lockhouse_config::{self as config, Files};
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::{Scope, Search, effect_label};
use lockhouse_policies::Effect;
use lockhouse_protocol::{SEARCH_LIMIT_MAX, SearchDetail, ServerName, ToolName};
use serde_json::{Value, json};

use super::terminal::for_stdout;
use super::unavailable_servers::describe_unavailable;
use super::{UNAVAILABLE, USAGE, print_error, start, table};

/// Subcommands of `lockhouse tools`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the tools of all servers, and whether the policy permits them
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the permitted tools, best match first
    Search {
        /// Search words
        query: Vec<String>,
        /// Maximum number of tools that are printed
        #[arg(long, value_name = "N", default_value_t = SEARCH_LIMIT_MAX,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(SEARCH_LIMIT_MAX)))]
        limit: u32,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the full definition of one tool
    Show {
        /// The tool, as SERVER.TOOL
        name: String,
    },
    /// Show the observed result types of tools without an output schema: field names and types, never values
    #[command(name = "shapes")]
    ResultShapes {
        /// SERVER or SERVER.TOOL [default: all tools]
        name: Option<String>,
        /// Print as JSON, with a JSON Schema for each tool
        #[arg(long)]
        json: bool,
        /// Delete the observed types
        #[arg(long)]
        forget: bool,
    },
}

/// Runs a subcommand of `lockhouse tools` after connecting to the upstream servers.
pub(super) async fn tools(files: &Files, command: Command) -> ExitCode {
    let supervisor = match start(files, &[]) {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    let servers = gate.code_servers();
    if servers.is_empty() {
        eprintln!(
            "lockhouse: no server is configured; name a servers file with --servers, or add [servers.NAME] to the configuration"
        );
    }
    if !servers.is_empty() && config::find_policy(files).is_none() {
        eprintln!(
            "lockhouse: there is no policy, so every call is denied; generate one with `lockhouse policy init`"
        );
    }
    gate.upstreams().wait_settled().await;
    let status = match command {
        Command::List { json } => list(&supervisor, json),
        Command::Search { query, limit, json } => {
            let query = query.join(" ");
            let search = Search { query: &query, limit, detail: SearchDetail::Signatures, language: None };
            let found = gate.search(&Scope::all(servers.clone()), None, search).await.tools;
            if found.is_empty() && !servers.is_empty() {
                eprintln!("lockhouse: no permitted tool matches; `lockhouse tools list` lists all tools");
            }
            print_rows(&found, json, &["server", "tool", "summary"]);
            ExitCode::SUCCESS
        }
        Command::Show { name } => show(&supervisor, &name),
        Command::ResultShapes { name, json, forget } => {
            shapes::shapes(&supervisor, name.as_deref(), json, forget)
        }
    };
    let unavailable = describe_unavailable(gate.upstreams());
    for reason in &unavailable {
        eprintln!("lockhouse: not available: {reason}");
    }
    supervisor.close().await;
    // The output is incomplete without the unavailable servers.
    if unavailable.is_empty() || status != ExitCode::SUCCESS { status } else { ExitCode::from(UNAVAILABLE) }
}

fn list(supervisor: &Supervisor, as_json: bool) -> ExitCode {
    let gate = supervisor.gate();
    let row = |(server, tool, standing): (&ServerName, Tool, Option<Effect>)| {
        json!({
            "server": server.as_str(), "tool": tool.name.as_str(), "policy": effect_label(standing),
            "reads_only": tool.is_read_only(), "summary": tool.summary,
        })
    };
    let rows: Vec<Value> = gate.all_tools().into_iter().map(row).collect();
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
        gate.all_tools().into_iter().find(|(other, found, _)| **other == server && found.name == tool);
    match found {
        Some((_, found, standing)) => {
            // The results of a denied tool are not disclosed.
            let connection = gate.upstreams().get(&server).filter(|_| standing != Some(Effect::Deny));
            let observed = connection.and_then(|connection| connection.shapes.observed_schema(&found));
            let asks = standing == Some(Effect::Ask);
            let mut full = found.full_entry(
                server.as_str(),
                &DescribeOptions {
                    requires_approval: asks,
                    observed_output: observed,
                    keeps_text: connection.is_some_and(|connection| connection.keeps_text(&found.name)),
                    language: None,
                },
            );
            full["policy"] = effect_label(standing).into();
            // The fingerprint, as a policy pins it.
            full["definition"] = format!("sha256:{}", found.fingerprint).into();
            println!("{}", for_stdout(&format!("{full:#}")));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("lockhouse: there is no tool {name}; `lockhouse tools list` lists all tools");
            ExitCode::from(USAGE)
        }
    }
}

/// Parses a tool name, written as `SERVER.TOOL`, or as `SERVER/TOOL` as in denial messages. Server names contain
/// neither separator, so the first one ends the server's name.
pub(super) fn parse_name(name: &str) -> Result<(ServerName, ToolName), ExitCode> {
    let Some((server, tool)) = name.split_once(['.', '/']) else {
        eprintln!("lockhouse: {name:?} does not have the form SERVER.TOOL");
        return Err(ExitCode::from(USAGE));
    };
    let parsed = ServerName::new(server).and_then(|server| Ok((server, ToolName::new(tool)?)));
    parsed.map_err(|invalid| print_error(&invalid, USAGE))
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
