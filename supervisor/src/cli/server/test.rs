//! `lockhouse server test`: tests the connection to one server step by step, and prints the time of each step.

mod reachability;
mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::{RunContext, Scope};
use lockhouse_protocol::{CallId, ServerName, ToolName, WorkerRequest};
use lockhouse_run_channel::RunChannel;
use lockhouse_upstream::{Connection, Endpoint, ShutdownMethod};

use super::{find, load};
use crate::cli::audit_forwarding::AuditForwarding;
use crate::cli::terminal::{for_stdout, sanitize};
use crate::cli::unavailable_servers::unavailable_reason;
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error, start_with};
use lockhouse_config::{self as config, Files, Settings};
use steps::{StepError, Steps};

/// The maximum number of characters that are shown of a tool result.
const SHOWN_CHARS_MAX: usize = 2_000;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the server
    name: String,
    /// Also call this tool, if the policy permits it
    #[arg(long, value_name = "TOOL")]
    call: Option<String>,
    /// The arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON", requires = "call", default_value = "{}")]
    arguments: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn test(files: &Files, arguments: Arguments) -> Result<ExitCode, ExitCode> {
    let mut settings = load(files)?;
    let (name, server) = find(&settings, &arguments.name).map_err(|unknown| unknown.print())?;
    let (name, server) = (name.clone(), server.clone());
    let call = parse_call(&name, &arguments)?;
    let policy = config::load_policy(files).map_err(|error| print_config_error(&error))?;
    let advice = reachability::advice(name.as_str(), &server.endpoint);
    settings.engine.servers.retain(|known, _| *known == name);
    let mut steps = Steps::new(!arguments.json);
    if check_reachable(&settings, &mut steps).await {
        let begun = Instant::now();
        let supervisor = start_with(settings.engine.clone(), policy, &[])?;
        let forwarding = AuditForwarding::start(&settings, &supervisor)?;
        if let Some(connection) = supervisor.gate().upstreams().get(&name) {
            check_connection(connection, begun, &advice, &mut steps).await;
            if let (Some(call), true) = (call, steps.all_passed()) {
                check_call(&supervisor, &name, call, &mut steps).await;
            }
            let stopping = Instant::now();
            supervisor.close().await;
            report_stop(connection, stopping.elapsed(), &mut steps);
        }
        forwarding.close().await;
    }
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", steps.to_json(name.as_str()))));
    }
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) })
}

/// Parses `--call` and `--arguments` into a request to call a tool. `None` without `--call`.
fn parse_call(name: &ServerName, arguments: &Arguments) -> Result<Option<WorkerRequest>, ExitCode> {
    let Some(tool) = &arguments.call else { return Ok(None) };
    let tool = ToolName::new(tool.as_str()).map_err(|invalid| print_error(&invalid, USAGE))?;
    let is_object = |text: &str| serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(text).is_ok();
    if !is_object(&arguments.arguments) {
        eprintln!("lockhouse: --arguments takes a JSON object, such as '{{\"path\": \"/srv\"}}'");
        return Err(ExitCode::from(USAGE));
    }
    let arguments = arguments.arguments.clone().into_bytes();
    Ok(Some(WorkerRequest::Call {
        server: name.clone(),
        tool,
        arguments,
        decoded: Vec::new(),
        timeout_ms: None,
        line: None,
    }))
}

/// Checks that the program of the server exists, or that the host name in its URL resolves, and adds the result to
/// `steps`. `settings` contains only the server to test. Returns whether all steps so far passed.
async fn check_reachable(settings: &Settings, steps: &mut Steps) -> bool {
    for server in settings.engine.servers.values() {
        let begun = Instant::now();
        let (step, outcome) = match &server.endpoint {
            Endpoint::Stdio(command) => ("program", reachability::find_program(command, &server.origin)),
            Endpoint::Http(endpoint) => ("address", reachability::resolve_address(&endpoint.url).await),
            // The connection is the first thing that can be tested.
            Endpoint::Socket(_) => continue,
        };
        steps.add(step, begun.elapsed(), outcome.map_err(StepError::from));
    }
    steps.all_passed()
}

/// Waits until the server is connected, and adds a test step for each phase, from the start of the server to its answer
/// to a ping. `begun` is the time when the connection was started. `advice` is added as a hint if the connection fails.
async fn check_connection(connection: &Connection, begun: Instant, advice: &str, steps: &mut Steps) {
    let offer = connection.connected_server().await;
    let took = begun.elapsed();
    let status = connection.status();
    let mut before = Duration::ZERO;
    if let Some(spawned) = status.spawn_time {
        steps.add("start", spawned, Ok("the process is running".into()));
        before = spawned;
    }
    if let Some(handshake) = status.handshake_time {
        let era = status.protocol_version.as_deref().unwrap_or("of an unknown version");
        let fell_back =
            if status.used_legacy_handshake { ", after a restart with the older handshake" } else { "" };
        steps.add("handshake", handshake.saturating_sub(before), Ok(format!("MCP {era}{fell_back}")));
        before = handshake;
    }
    let offer = match offer {
        Ok(offer) => offer,
        Err(failure) => {
            let reason = unavailable_reason(connection).unwrap_or(failure.message);
            let step = match (status.spawn_time, status.handshake_time) {
                (_, Some(_)) => "tools",
                (Some(_), None) => "handshake",
                (None, None) => "connect",
            };
            steps.add(step, took.saturating_sub(before), Err(StepError::Unavailable(reason)));
            return steps.hint(advice);
        }
    };
    let (tools, bytes) = (offer.catalogue.tools.len(), offer.catalogue.definitions_bytes);
    let listed = status.start_time.unwrap_or(took).saturating_sub(before);
    steps.add("tools", listed, Ok(format!("{tools}, with {bytes} bytes of definitions")));
    let begun = Instant::now();
    let answered = match connection.answers(&offer).await {
        true => Ok("it answers".into()),
        false => Err(StepError::NoAnswer),
    };
    steps.add("ping", begun.elapsed(), answered);
}

/// Calls a tool as submitted code would, and adds the result as a test step. The policy decides about the call, and the
/// audit log records it.
async fn check_call(supervisor: &Supervisor, name: &ServerName, call: WorkerRequest, steps: &mut Steps) {
    let (gate, approvers) = (supervisor.gate(), supervisor.approvers().clone());
    let channel = RunChannel::without_client(gate.audit());
    let from =
        RunContext::new(channel, None, Scope::all(vec![name.clone()]), "".into(), approvers, gate.audit());
    let begun = Instant::now();
    let (reply, _) = gate.handle_request(&from, CallId(1), gate.tool_request(&from, &call), call).await;
    let shown = |json: Vec<u8>| String::from_utf8_lossy(&json).chars().take(SHOWN_CHARS_MAX).collect();
    steps.add("call", begun.elapsed(), reply.map(shown).map_err(StepError::Call));
}

/// Adds a test step that says how the server's process stopped; `took` is the time that this took. The step passes even if the process had to be killed.
/// An HTTP server has no such step.
fn report_stop(connection: &Connection, took: Duration, steps: &mut Steps) {
    let how = match connection.status().shutdown {
        Some(ShutdownMethod::Exited) => "it exited at the end of its input",
        Some(ShutdownMethod::Sigterm) => "it ignored the end of its input, and exited on SIGTERM",
        Some(ShutdownMethod::Sigkill) => "it ignored the end of its input and SIGTERM, and was killed",
        None => return,
    };
    steps.add("stop", took, Ok(how.into()));
}

/// Converts untrusted text to one line without control characters.
fn one_line(text: &str) -> String {
    sanitize(&text.replace('\n', " "))
}
