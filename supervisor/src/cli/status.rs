//! `lockhouse status`: shows the status of the running Lockhouse processes of this user, and entries of AI clients that
//! need a change.

use std::process::ExitCode;

use lockhouse_client_files::unsuitable_entries;
use lockhouse_config::Environment;
use lockhouse_messages::{OperatorRequest, OperatorResponse};
use serde_json::{Value, json};

use super::control_client::request_all;
use super::engine_description::{DescribedEngine, EngineDescription};
use super::{UNAVAILABLE, USAGE, all_users, engine_socket, line_width, print_error, table};

/// Options of `lockhouse status`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print as JSON, in the format of `/health`, with the member `own_engine`
    #[arg(long)]
    json: bool,
    /// Show a table of the processes of all users; for root only
    #[arg(long)]
    all_users: bool,
}

pub(super) async fn status(arguments: &Arguments) -> ExitCode {
    if arguments.all_users {
        return match all_users::require_root() {
            Ok(()) => all_users::status::status(arguments.json).await,
            Err(error) => print_error(&error, USAGE),
        };
    }
    let mut running = Vec::new();
    for (_, response) in request_all(&OperatorRequest::Health).await {
        if let OperatorResponse::Health(health) = response
            && health["serving"] == true
        {
            running.push(health);
        }
    }
    explain_engines(&mut running);
    if arguments.json {
        println!("{:#}", json!(running));
    } else if running.is_empty() {
        println!("No Lockhouse is running.");
    } else {
        println!("{}", running.iter().map(describe_process).collect::<Vec<_>>().join("\n\n"));
    }
    if !arguments.json {
        for entry in unsuitable_entries(&Environment::from_process()) {
            let warning = format!("warning: {}", lockhouse_policies::printable(&entry.to_string()));
            println!("\n{}", line_width::wrap_lines(&warning));
        }
    }
    let is_ready = |health: &Value| health["ready"] == true;
    if !running.is_empty() && running.iter().all(is_ready) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNAVAILABLE)
    }
}

/// Adds to the reports of processes, as the member `own_engine`, why their clients do not share the engine of the process
/// that runs longest.
fn explain_engines(running: &mut [Value]) {
    let descriptions = engine_socket::directory().map(|directory| EngineDescription::read_all(&directory));
    let descriptions = descriptions.unwrap_or_default();
    let of = |health: &Value| descriptions.iter().find(|description| health["pid"] == description.pid);
    let shared = running.iter().filter(|health| {
        of(health).is_some_and(|description| matches!(description.engine, DescribedEngine::Shared(_)))
    });
    let age = |health: &&Value| health["uptime_s"].as_f64().unwrap_or_default();
    let oldest = shared.max_by(|one, other| age(one).total_cmp(&age(other))).and_then(of);
    for health in running {
        let reason = match of(health).map(|description| &description.engine) {
            Some(DescribedEngine::Own(reason)) => Some(reason.clone()),
            Some(engine) => oldest.and_then(|oldest| engine.difference(oldest)),
            None => None,
        };
        if let Some(reason) = reason {
            health["own_engine"] = reason.into();
        }
    }
}

/// Describes one Lockhouse process as text, from its health report: a summary, and a table of its language engines,
/// upstream servers and connected AI clients.
fn describe_process(health: &Value) -> String {
    let text = |value: &Value| lockhouse_policies::printable(value.as_str().unwrap_or_default());
    let reasons: Vec<String> = health["reasons"].as_array().into_iter().flatten().map(text).collect();
    let readiness = if health["ready"] == true {
        "ready".to_owned()
    } else {
        format!("not ready: {}", reasons.join("; "))
    };
    let audit = if health["audit"]["writable"] == true { "writable" } else { "NOT writable" };
    let head = format!(
        "lockhouse {} (process {}), up {} s: {readiness}\n{} running, {} waiting, {} sessions, {} results kept, audit log {audit}, \
         configuration {}",
        text(&health["version"]),
        health["pid"],
        health["uptime_s"].as_f64().unwrap_or_default() as u64,
        health["running"],
        health["queue"],
        health["sessions"],
        health["results"]["kept"],
        health["configuration"]["generation"],
    );
    let engines =
        health["engines"].as_object().into_iter().flatten().map(|(name, engine)| engine_row(name, engine));
    let upstreams = health["upstreams"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, upstream)| upstream_row(name, upstream));
    let clients = health["clients"].as_array().into_iter().flatten().map(client_row);
    let processes = health["http_processes"].as_array().into_iter().flatten().map(process_row);
    let destinations = health["audit"]["forward"].as_array().into_iter().flatten().map(destination_row);
    let rows: Vec<Vec<String>> =
        engines.chain(upstreams).chain(processes).chain(clients).chain(destinations).collect();
    let own_engine = health["own_engine"].as_str().map(lockhouse_policies::printable);
    let own_engine =
        own_engine.map_or_else(String::new, |reason| format!("\nan engine of its own: {reason}"));
    let head = line_width::wrap_lines(&format!("{head}{own_engine}"));
    format!("{head}\n{}", table::render(&["kind", "name", "state", "details"], &rows))
}

/// Describes a sealed process of the HTTP service.
fn process_row(process: &Value) -> Vec<String> {
    let text = |name: &str| lockhouse_policies::printable(process[name].as_str().unwrap_or_default());
    let about = format!("process {}; cannot reach {}", process["pid"], text("cannot_reach"));
    vec!["process".into(), text("process"), "sealed".into(), about]
}

fn client_row(client: &Value) -> Vec<String> {
    let name = lockhouse_policies::printable(client["name"].as_str().unwrap_or_default());
    vec!["client".into(), name, "connected".into(), format!("process {}", client["pid"])]
}

/// Describes a destination to which the audit log is forwarded.
fn destination_row(destination: &Value) -> Vec<String> {
    let name = lockhouse_policies::printable(destination["destination"].as_str().unwrap_or_default());
    let lag = destination["lag_s"].as_f64().unwrap_or_default();
    let behind = if lag > 0.0 { format!("{lag:.0} s behind") } else { "all records delivered".to_owned() };
    let about = destination["fault"].as_str().map_or(behind.clone(), |fault| format!("{behind}: {fault}"));
    let state = if destination["fault"].is_null() { "forwarding" } else { "failing" };
    vec!["audit log".into(), name, state.into(), lockhouse_policies::printable(&about)]
}

fn engine_row(name: &str, engine: &Value) -> Vec<String> {
    let about = match (&engine["reason"], &engine["pool"]) {
        (Value::String(reason), _) => reason.clone(),
        (_, pool) => {
            let reduced = engine["reduced"].as_array().map_or(0, Vec::len);
            let sandbox = match reduced {
                0 => "full protection".to_owned(),
                _ => format!("reduced protection ({reduced}: see `lockhouse doctor`)"),
            };
            format!(
                "{sandbox}, {} of {} running, {} idle, {} waiting",
                pool["running"], pool["places"], pool["idle"], pool["waiting"]
            )
        }
    };
    vec!["engine".into(), name.into(), engine["state"].as_str().unwrap_or_default().into(), about]
}

fn upstream_row(name: &str, upstream: &Value) -> Vec<String> {
    let counted = || {
        let tools = upstream["tools"].as_u64().map_or_else(String::new, |tools| format!("{tools} tools, "));
        format!("{tools}{} calls answered, {} reconnects", upstream["answered"], upstream["reconnects"])
    };
    let mut about = upstream["reason"].as_str().map_or_else(counted, str::to_owned);
    let lacks: Vec<&str> =
        upstream["sandbox_lacks"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !lacks.is_empty() {
        about += &format!(", sandbox without {}", lacks.join(", "));
    }
    vec!["server".into(), name.into(), upstream["state"].as_str().unwrap_or_default().into(), about]
}
