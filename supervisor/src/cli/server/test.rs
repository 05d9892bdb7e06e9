//! `lockhouse server test`: one server, step by step, each with its time.

mod reach;
mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lockhouse_base::principal::Principal;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_gate::{Asked, Requester, Scope};
use lockhouse_protocol::{CallId, ExecutionId, Request, ServerName, ToolName};
use lockhouse_upstream::ai_client::OpenQuestions;
use lockhouse_upstream::{Caller, Connection, Ending, Reach};

use super::{find, load};
use crate::cli::terminal::{for_stdout, harmless};
use crate::cli::unavailable::why_unavailable;
use crate::cli::{UNAVAILABLE, USAGE, complain, complain_config, start_with};
use crate::config::{self, Files, Settings};
use steps::{StepError, Steps};

/// Characters of a result that are shown.
const SHOWN_CHARS_MAX: usize = 2_000;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The server
    name: String,
    /// Call this tool as well, if the policy permits it
    #[arg(long, value_name = "TOOL")]
    call: Option<String>,
    /// The arguments of the call
    #[arg(long, value_name = "JSON", requires = "call", default_value = "{}")]
    arguments: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn test(files: &Files, arguments: Arguments) -> Result<ExitCode, ExitCode> {
    let mut settings = load(files)?;
    let (name, server) = find(&settings, &arguments.name)?;
    let (name, server) = (name.clone(), server.clone());
    let call = call(&name, &arguments)?;
    let policy = config::load_policy(files).map_err(|error| complain_config(&error))?;
    let advice = reach::advice(name.as_str(), &server.reach);
    settings.engine.servers.retain(|known, _| *known == name);
    let mut steps = Steps::new(!arguments.json);
    if reached(&settings, &mut steps).await {
        let begun = Instant::now();
        let supervisor = start_with(settings.engine, policy, &[])?;
        if let Some(connection) = supervisor.gate().upstreams().get(&name) {
            connected(connection, begun, &advice, &mut steps).await;
            if let (Some(call), true) = (call, steps.all_done()) {
                called(&supervisor, &name, call, &mut steps).await;
            }
            let stopping = Instant::now();
            supervisor.close().await;
            stopped(connection, stopping.elapsed(), &mut steps);
        }
    }
    if arguments.json {
        println!("{}", for_stdout(&format!("{:#}", steps.to_json(name.as_str()))));
    }
    Ok(if steps.all_done() { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) })
}

/// What `--call` asks for.
fn call(name: &ServerName, arguments: &Arguments) -> Result<Option<Request>, ExitCode> {
    let Some(tool) = &arguments.call else { return Ok(None) };
    let tool = ToolName::new(tool.as_str()).map_err(|invalid| complain(&invalid, USAGE))?;
    let is_object = |text: &str| serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(text).is_ok();
    if !is_object(&arguments.arguments) {
        eprintln!("lockhouse: --arguments takes a JSON object, such as '{{\"path\": \"/srv\"}}'");
        return Err(ExitCode::from(USAGE));
    }
    let arguments = arguments.arguments.clone().into_bytes();
    Ok(Some(Request::Call { server: name.clone(), tool, arguments, timeout_ms: None, line: None }))
}

/// Whether there is anything to connect to.
async fn reached(settings: &Settings, steps: &mut Steps) -> bool {
    for server in settings.engine.servers.values() {
        let begun = Instant::now();
        let (step, outcome) = match &server.reach {
            Reach::Stdio(command) => ("program", reach::program(command, &server.origin)),
            Reach::Http(endpoint) => ("address", reach::address(&endpoint.url).await),
        };
        steps.add(step, begun.elapsed(), outcome.map_err(StepError::from));
    }
    steps.all_done()
}

/// From the start to an answer.
async fn connected(connection: &Connection, begun: Instant, advice: &str, steps: &mut Steps) {
    let offer = connection.offer().await;
    let took = begun.elapsed();
    let status = connection.status();
    let mut before = Duration::ZERO;
    if let Some(spawned) = status.spawned {
        steps.add("start", spawned, Ok("the process runs".into()));
        before = spawned;
    }
    if let Some(handshake) = status.handshake {
        let era = status.era.as_deref().unwrap_or("of an unknown version");
        let fell_back =
            if status.fell_back { ", after it was started again with the older handshake" } else { "" };
        steps.add("handshake", handshake.saturating_sub(before), Ok(format!("MCP {era}{fell_back}")));
        before = handshake;
    }
    let offer = match offer {
        Ok(offer) => offer,
        Err(failure) => {
            let reason = why_unavailable(connection).unwrap_or(failure.message);
            let step = match (status.spawned, status.handshake) {
                (_, Some(_)) => "tools",
                (Some(_), None) => "handshake",
                (None, None) => "connect",
            };
            steps.add(step, took.saturating_sub(before), Err(StepError::Unavailable(reason)));
            return steps.hint(advice);
        }
    };
    let (tools, bytes) = (offer.catalogue.tools.len(), offer.catalogue.definitions_bytes);
    let listed = status.start.unwrap_or(took).saturating_sub(before);
    steps.add("tools", listed, Ok(format!("{tools}, with {bytes} bytes of definitions")));
    let begun = Instant::now();
    let answered = match connection.answers(&offer).await {
        true => Ok("it answers".into()),
        false => Err(StepError::NoAnswer),
    };
    steps.add("ping", begun.elapsed(), answered);
}

/// One call, on the same way as a program's: the policy decides, and there is a record of it.
async fn called(supervisor: &Supervisor, name: &ServerName, call: Request, steps: &mut Steps) {
    let execution = ExecutionId(uuid::Uuid::now_v7().as_u128());
    let caller =
        Caller { execution, client: None, ai_client: None, questions: OpenQuestions::default(), wire: None };
    let (gate, approvers) = (supervisor.gate(), supervisor.approvers().clone());
    let from = Requester::new(
        caller,
        None,
        Principal::local(),
        Scope::all(vec![name.clone()]),
        "".into(),
        approvers,
        gate.audit(),
    );
    let begun = Instant::now();
    let (reply, _) = gate.answer(&from, CallId(1), Asked::of(&call), call).await;
    let shown = |json: Vec<u8>| String::from_utf8_lossy(&json).chars().take(SHOWN_CHARS_MAX).collect();
    steps.add("call", begun.elapsed(), reply.map(shown).map_err(StepError::Call));
}

/// A server that has to be killed works, and is told.
fn stopped(connection: &Connection, took: Duration, steps: &mut Steps) {
    let how = match connection.status().ending {
        Some(Ending::Left) => "it left by itself",
        Some(Ending::Terminated) => "it ignored the end of its input, and left on SIGTERM",
        Some(Ending::Killed) => "it ignored the end of its input and SIGTERM, and was killed",
        None => return,
    };
    steps.add("stop", took, Ok(how.into()));
}

/// One line of what a server or a person wrote.
fn one_line(text: &str) -> String {
    harmless(text).replace('\n', " ")
}
