//! `lockhouse demo`: runs example programs against a built-in upstream server, and prints how much model context they
//! save.

pub(crate) mod server;
mod shop;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use lockhouse_config::{Files, Settings};
use lockhouse_engine::execution::{ExecutionAnswer, parse_value};
use lockhouse_engine::supervisor::{CodeRequest, Supervisor};
use lockhouse_messages::CutValue;
use lockhouse_policies::{Policy, Source};
use lockhouse_protocol::{Language, ServerName};
use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition, ServerLimits};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{UNAVAILABLE, print_error, table};

const POLICY: &str = include_str!("demo/policy.toml");
const PROGRAMS: [(&str, Language, &str); 4] = [
    ("Which customers wait longest for late orders?", Language::Python, include_str!("demo/late_orders.py")),
    ("The same in TypeScript", Language::Typescript, include_str!("demo/late_orders.ts")),
    ("A refund, which the policy denies", Language::Python, include_str!("demo/refund.py")),
    ("A file and a connection, which the sandbox refuses", Language::Python, include_str!("demo/escape.py")),
];

/// Runs `lockhouse demo`. The exit status is 1 if an example program did not end as expected.
pub(crate) async fn demo() -> ExitCode {
    match run_demo().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => print_error(error.as_ref(), UNAVAILABLE),
    }
}

async fn run_demo() -> Result<bool, Box<dyn std::error::Error>> {
    let scratch = Scratch::new()?;
    let mut settings = Settings::load(&Files::default())?;
    settings.engine.audit.directory = scratch.0.join("audit");
    settings.engine.audit.keys = scratch.0.clone();
    // This log is deleted at the end, and goes nowhere.
    settings.engine.audit.forward_within = None;
    let shop = ServerName::new("shop")?;
    settings.engine.servers = BTreeMap::from([(shop.clone(), demo_server()?)]);
    let policy = Policy::parse(Source { path: "policy.toml".into(), text: POLICY.into() })?;
    let supervisor = Supervisor::start(settings.engine, policy, &[Language::Python, Language::Typescript])?;

    println!(
        "Upstream server `shop`: customers, orders and tickets of a web shop. The policy of this demo:\n"
    );
    println!("{}", indent(POLICY));
    let mut rows = Vec::new();
    let mut all_as_expected = true;
    let definitions = definitions_bytes(&supervisor, &shop).await?;
    for (title, language, code) in PROGRAMS {
        let request = CodeRequest::new(language, code);
        let answer = supervisor.run_code(request, &CancellationToken::new()).await;
        println!("── {title} ({}) ──\n\n{}", language.as_str(), indent(code));
        print_answer(&answer);
        all_as_expected &=
            answer.value.is_some() || answer.error.as_ref().is_some_and(|error| error.code.is_some());
        if answer.value.is_some() && !answer.calls.is_empty() {
            rows.push(comparison(title, definitions, code, &answer));
        }
    }
    supervisor.close().await;
    println!("── Bytes in the model's context ──\n");
    let head = ["program", "calls", "direct tool calls", "through Lockhouse", "saved"];
    println!("{}\n", table::render(&head, &rows));
    println!(
        "Direct tool calls: the definitions of the server's tools ({definitions}) and each result. Through Lockhouse: the"
    );
    println!(
        "definitions of run_code and search_tools ({}), the program and its answer.",
        lockhouse_front::definitions_bytes()
    );
    Ok(all_as_expected)
}

fn demo_server() -> std::io::Result<ServerDefinition> {
    let command = ServerCommand {
        program: std::env::current_exe()?.to_string_lossy().into_owned(),
        arguments: vec!["demo-server".into()],
        ..ServerCommand::default()
    };
    Ok(ServerDefinition::new(Endpoint::Stdio(command), ServerLimits::default(), "the demo".into()))
}

/// Returns the size in bytes of the tool definitions that an AI client would load if it connected to the example server
/// without Lockhouse.
async fn definitions_bytes(
    supervisor: &Supervisor,
    server: &ServerName,
) -> Result<usize, Box<dyn std::error::Error>> {
    let gate = supervisor.gate();
    let connection = gate.upstreams().get(server).ok_or("the demo server is missing")?;
    let catalogue = connection.catalogue().await.map_err(|failure| failure.message)?;
    Ok(catalogue.definitions_bytes)
}

fn comparison(title: &str, definitions: usize, code: &str, answer: &ExecutionAnswer) -> Vec<String> {
    let direct = definitions + answer.calls.iter().map(|call| call.bytes).sum::<usize>();
    let through_lockhouse = lockhouse_front::definitions_bytes()
        + code.len()
        + answer.to_complete().members(CutValue::Value).to_json().to_string().len();
    let saved = 100.0 * (1.0 - through_lockhouse as f64 / direct as f64);
    let calls = answer.calls.len().to_string();
    vec![title.into(), calls, direct.to_string(), through_lockhouse.to_string(), format!("{saved:.1} %")]
}

fn print_answer(answer: &ExecutionAnswer) {
    print!("{}", answer.stdout);
    match (answer.value.as_deref().map(parse_value), &answer.error) {
        (Some(value), _) => println!("→ {}\n", format_value(&value)),
        (None, Some(error)) => println!("→ {} {}: {}\n", answer.status.as_str(), error.kind, error.message),
        (None, None) => println!("→ {}\n", answer.status.as_str()),
    }
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Array(rows) => rows.iter().map(|row| format!("\n  {row}")).collect(),
        other => other.to_string(),
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// A private temporary directory for the demo's files, which is removed on drop.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("lockhouse-demo-{}", uuid::Uuid::now_v7()));
        create_private(&path)?;
        Ok(Self(path))
    }
}

fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
