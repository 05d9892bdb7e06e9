//! `lockhouse stubs`: writes type stubs of the permitted tools, for type checkers and editors.

mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_catalog::Tool;
use lockhouse_config::Files;
use lockhouse_gate::Gate;
use lockhouse_protocol::ServerName;
use serde_json::{Value, json};

use super::language::LanguageName;
use super::terminal::for_stdout;
use super::unavailable_servers::describe_unavailable;
use super::{UNAVAILABLE, USAGE, print_error, start};

use tree::{Tree, TreeError};

/// Options of `lockhouse stubs`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The output directory, which is created if needed
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Only write stubs for this language
    #[arg(long, value_enum)]
    language: Option<LanguageName>,
    /// Print the paths of the written files as JSON
    #[arg(long)]
    json: bool,
    /// Only the tools of these servers
    #[arg(id = "only", value_name = "SERVER", value_parser = |name: &str| ServerName::new(name))]
    servers: Vec<ServerName>,
}

/// An upstream server and its permitted tools.
struct PermittedTools {
    server: ServerName,
    tools: Vec<PermittedTool>,
}

struct PermittedTool {
    tool: Tool,
    requires_approval: bool,
    /// The JSON Schema that was inferred from earlier results.
    observed_output: Option<Value>,
}

/// Runs `lockhouse stubs`: connects to the upstream servers and writes the type stubs of their permitted tools.
pub(super) async fn stubs(files: &Files, arguments: &Arguments) -> ExitCode {
    let supervisor = match start(files, &[]) {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    let known = gate.code_servers();
    if let Some(unknown) = arguments.servers.iter().find(|name| !known.contains(name)) {
        eprintln!("lockhouse: there is no server {unknown}; `lockhouse server list` lists all servers");
        supervisor.close().await;
        return ExitCode::from(USAGE);
    }
    gate.upstreams().wait_settled().await;
    let status = match write(&gate, &known, arguments) {
        Ok(written) => print_written(&written, arguments.json),
        Err(error) => print_error(&error, error.status()),
    };
    let unavailable = describe_unavailable(gate.upstreams());
    for reason in &unavailable {
        eprintln!("lockhouse: not available: {reason}");
    }
    supervisor.close().await;
    if unavailable.is_empty() || status != ExitCode::SUCCESS { status } else { ExitCode::from(UNAVAILABLE) }
}

/// The result of `lockhouse stubs`: the written files with their sizes in bytes, the removed files, and the number of
/// tools of each upstream server.
struct Written {
    out: PathBuf,
    files: Vec<(String, usize)>,
    removed: Vec<String>,
    servers: Vec<(ServerName, usize)>,
}

fn write(gate: &Gate, known: &[ServerName], arguments: &Arguments) -> Result<Written, TreeError> {
    let wanted = |name: &&ServerName| arguments.servers.is_empty() || arguments.servers.contains(name);
    let permitted: Vec<PermittedTools> = known
        .iter()
        .filter(wanted)
        .filter_map(|server| {
            let shapes = gate.upstreams().get(server).map(|connection| &connection.shapes);
            let row = |(tool, requires_approval)| PermittedTool {
                observed_output: shapes.and_then(|shapes| shapes.observed_schema(&tool)),
                tool,
                requires_approval,
            };
            let tools = gate.permitted_tools(server)?.into_iter().map(row).collect();
            Some(PermittedTools { server: server.clone(), tools })
        })
        .collect();
    let mut tree = Tree::default();
    if !matches!(arguments.language, Some(LanguageName::Typescript)) {
        tree.add_python(&permitted);
    }
    if !matches!(arguments.language, Some(LanguageName::Python)) {
        tree.add_typescript(&permitted, known);
    }
    tree.add_index(&permitted);
    let files = tree.write(&arguments.out)?;
    let removed = tree.remove_unconfigured(&arguments.out, known);
    let servers = permitted.into_iter().map(|one| (one.server, one.tools.len())).collect();
    Ok(Written { out: arguments.out.clone(), files, removed, servers })
}

fn print_written(written: &Written, as_json: bool) -> ExitCode {
    let out = written.out.display();
    if as_json {
        let files = written.files.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes}));
        let servers =
            written.servers.iter().map(|(name, tools)| json!({"name": name.as_str(), "tools": tools}));
        let summary = json!({
            "out": out.to_string(), "files": files.collect::<Value>(), "removed": written.removed,
            "servers": servers.collect::<Value>(),
        });
        println!("{}", for_stdout(&format!("{summary:#}")));
        return ExitCode::SUCCESS;
    }
    for (path, bytes) in &written.files {
        println!("{}", for_stdout(&format!("{out}/{path}  {bytes} bytes")));
    }
    for path in &written.removed {
        println!("{}", for_stdout(&format!("{out}/{path}  removed: its server is no longer configured")));
    }
    let tools: usize = written.servers.iter().map(|(_, tools)| tools).sum();
    println!(
        "wrote {tools} permitted tools of {} servers; {out}/README.md lists them",
        written.servers.len()
    );
    ExitCode::SUCCESS
}
