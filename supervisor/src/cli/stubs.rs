//! `lockhouse stubs`: the permitted tools as files that type checkers, editors and people read.

mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_catalog::Tool;
use lockhouse_gate::Gate;
use lockhouse_protocol::ServerName;
use serde_json::{Value, json};

use super::language::LanguageName;
use super::terminal::for_stdout;
use super::unavailable::unavailable;
use super::{UNAVAILABLE, USAGE, complain, start};
use crate::config::Files;

use tree::{Tree, TreeError};

/// What to write, and where.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The directory, which is made if there is none
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// For programs in this language alone
    #[arg(long, value_enum)]
    language: Option<LanguageName>,
    /// Say what was written as JSON
    #[arg(long)]
    json: bool,
    /// Of these servers alone
    #[arg(value_name = "SERVER", value_parser = |name: &str| ServerName::new(name))]
    of: Vec<ServerName>,
}

/// One server and its permitted tools, each with whether a person is asked.
struct Offered {
    server: ServerName,
    tools: Vec<(Tool, bool)>,
}

/// Connects, writes, and closes.
pub(super) async fn stubs(files: &Files, arguments: &Arguments) -> ExitCode {
    let supervisor = match start(files, &[]) {
        Ok(supervisor) => supervisor,
        Err(status) => return status,
    };
    let gate = supervisor.gate();
    let known = gate.servers();
    if let Some(unknown) = arguments.of.iter().find(|name| !known.contains(name)) {
        eprintln!("lockhouse: there is no server {unknown}; `lockhouse server list` shows all");
        supervisor.close().await;
        return ExitCode::from(USAGE);
    }
    gate.upstreams().settle().await;
    let status = match write(&gate, &known, arguments) {
        Ok(written) => told(&written, arguments.json),
        Err(error) => complain(&error, error.status()),
    };
    let unavailable = unavailable(gate.upstreams());
    for reason in &unavailable {
        eprintln!("lockhouse: not available: {reason}");
    }
    supervisor.close().await;
    if unavailable.is_empty() || status != ExitCode::SUCCESS { status } else { ExitCode::from(UNAVAILABLE) }
}

/// What was written: files with their bytes, and how many tools there are of each server.
struct Written {
    out: PathBuf,
    files: Vec<(String, usize)>,
    removed: Vec<String>,
    servers: Vec<(ServerName, usize)>,
}

fn write(gate: &Gate, known: &[ServerName], arguments: &Arguments) -> Result<Written, TreeError> {
    let wanted = |name: &&ServerName| arguments.of.is_empty() || arguments.of.contains(name);
    let offered: Vec<Offered> = known
        .iter()
        .filter(wanted)
        .filter_map(|server| Some(Offered { server: server.clone(), tools: gate.permitted_tools(server)? }))
        .collect();
    let mut tree = Tree::default();
    if !matches!(arguments.language, Some(LanguageName::Typescript)) {
        tree.add_python(&offered);
    }
    if !matches!(arguments.language, Some(LanguageName::Python)) {
        tree.add_typescript(&offered, known);
    }
    tree.add_index(&offered);
    let (files, removed) = tree.write(&arguments.out, known)?;
    let servers = offered.into_iter().map(|one| (one.server, one.tools.len())).collect();
    Ok(Written { out: arguments.out.clone(), files, removed, servers })
}

fn told(written: &Written, as_json: bool) -> ExitCode {
    let out = written.out.display();
    if as_json {
        let files = written.files.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes}));
        let servers =
            written.servers.iter().map(|(name, tools)| json!({"name": name.as_str(), "tools": tools}));
        let told = json!({
            "out": out.to_string(), "files": files.collect::<Value>(), "removed": written.removed,
            "servers": servers.collect::<Value>(),
        });
        println!("{}", for_stdout(&format!("{told:#}")));
        return ExitCode::SUCCESS;
    }
    for (path, bytes) in &written.files {
        println!("{}", for_stdout(&format!("{out}/{path}  {bytes} bytes")));
    }
    for path in &written.removed {
        println!("{}", for_stdout(&format!("{out}/{path}  removed: no such server is configured")));
    }
    let tools: usize = written.servers.iter().map(|(_, tools)| tools).sum();
    println!(
        "wrote {tools} permitted tools of {} servers; {out}/README.md lists them",
        written.servers.len()
    );
    ExitCode::SUCCESS
}
