//! `lockhouse tools shapes`: shows the field names and types that Lockhouse observed in the results of tools without an
//! output schema.

use std::process::ExitCode;

use lockhouse_catalog::Tool;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_policies::Effect;
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Value, json};

use super::super::terminal::for_stdout;
use super::super::{UNAVAILABLE, USAGE, print_error};
use super::{parse_name, print_rows};

/// Runs `lockhouse tools shapes`: shows the observed shapes (field names and types) of tool results, or deletes them
/// with `forget`.
pub(super) fn shapes(supervisor: &Supervisor, name: Option<&str>, as_json: bool, forget: bool) -> ExitCode {
    let (only, tool) = match name.map(parse_selection).transpose() {
        Ok(chosen) => chosen.map_or((None, None), |(server, tool)| (Some(server), tool)),
        Err(status) => return status,
    };
    if let Some(server) = &only
        && supervisor.gate().upstreams().get(server).is_none()
    {
        eprintln!("lockhouse: there is no server {server}; `lockhouse server list` lists all servers");
        return ExitCode::from(USAGE);
    }
    let (only, tool) = (only.as_ref(), tool.as_ref());
    if forget { forget_all(supervisor, only, tool) } else { show(supervisor, only, tool, as_json) }
}

fn show(
    supervisor: &Supervisor,
    only: Option<&ServerName>,
    tool: Option<&ToolName>,
    as_json: bool,
) -> ExitCode {
    let gate = supervisor.gate();
    let mut rows: Vec<Value> = Vec::new();
    for (server, found, standing) in gate.all_tools() {
        // The results of denied tools are not disclosed.
        if standing == Some(Effect::Deny) {
            continue;
        }
        if only.is_some_and(|only| only != server) || tool.is_some_and(|tool| *tool != found.name) {
            continue;
        }
        let Some(connection) = gate.upstreams().get(server) else { continue };
        let Some(observed) = connection.shapes.observed_schema(&found) else { continue };
        rows.push(json!({
            "server": server.as_str(), "tool": found.name.as_str(), "results": connection.shapes.result_count(&found),
            "observed": if as_json { observed } else { Tool::result_type(&observed).into() },
        }));
    }
    if rows.is_empty() {
        eprintln!("lockhouse: no results have been observed; tools with an output schema are not observed");
    }
    print_rows(&rows, as_json, &["server", "tool", "observed"]);
    ExitCode::SUCCESS
}

fn forget_all(supervisor: &Supervisor, only: Option<&ServerName>, tool: Option<&ToolName>) -> ExitCode {
    let gate = supervisor.gate();
    let mut forgotten = 0;
    for (server, connection) in gate.upstreams().iter() {
        if only.is_none_or(|only| only == server) {
            match connection.shapes.forget(tool) {
                Ok(count) => forgotten += count,
                Err(error) => return print_error(&error, UNAVAILABLE),
            }
        }
    }
    println!("{}", for_stdout(&format!("deleted the observed results of {forgotten} tools")));
    ExitCode::SUCCESS
}

/// Parses the argument `SERVER` or `SERVER.TOOL` of the command. The tool is `None` if only a server is named.
fn parse_selection(name: &str) -> Result<(ServerName, Option<ToolName>), ExitCode> {
    if name.contains(['.', '/']) {
        return parse_name(name).map(|(server, tool)| (server, Some(tool)));
    }
    ServerName::new(name).map(|server| (server, None)).map_err(|invalid| print_error(&invalid, USAGE))
}
