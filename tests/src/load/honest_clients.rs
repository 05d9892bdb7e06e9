//! The honest clients of load tests: each repeatedly sends a request, checks the answer, and pauses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http_connection::{Answer, Connection, Era, HONEST};
use super::results::Figures;

/// The time after which an honest client counts a missing answer as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How an honest client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    /// The client keeps one connection for all its requests, with this form of the protocol.
    KeepAlive(Era),
    /// The client opens a new connection for each stateless request, as a command in a script does.
    PerRequest,
}

/// Acts as one honest client until the caller drops this future. `think` is the average pause between requests. The
/// results are added to `figures`.
pub(crate) async fn behave(
    host: String,
    token: String,
    habit: ConnectionUse,
    think: Duration,
    figures: Arc<Figures>,
) {
    let era = if let ConnectionUse::KeepAlive(era) = habit { era } else { Era::Stateless };
    let mut connection = None;
    loop {
        tokio::time::sleep(think.mul_f64(fastrand::f64() * 2.0)).await;
        if habit == ConnectionUse::PerRequest {
            connection = None;
        }
        let started = Instant::now();
        let opened = match connection.take() {
            Some(opened) => Ok(opened),
            None => Connection::open(&host, HONEST, &token, era).await,
        };
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                figures.record_lost(format!("connecting: {error}"));
                continue;
            }
        };
        let task = Task::any();
        match tokio::time::timeout(ANSWER_TIMEOUT, task.ask(&mut opened)).await {
            Err(_) => figures.record_lost(format!("{task:?}: no answer in {ANSWER_TIMEOUT:?}")),
            Ok(Err(error)) => figures.record_lost(format!("{task:?}: {error}")),
            Ok(Ok(answer)) => {
                match task.judge(&answer) {
                    Ok(()) => figures.record_answer(started.elapsed()),
                    Err(why) => {
                        figures.record_wrong(format!("{task:?}: {why}: {} {}", answer.status, answer.message))
                    }
                }
                connection = Some(opened);
            }
        }
    }
}

/// A request of an honest client whose correct answer is known.
#[derive(Clone, Copy, Debug)]
enum Task {
    Python(u32),
    TypeScript(u32),
    PythonCall(u32),
    TypeScriptCall(u32),
    Search,
    List,
}

impl Task {
    fn any() -> Self {
        let number = fastrand::u32(..1_000_000);
        match fastrand::u8(..10) {
            0..=1 => Self::Python(number),
            2..=3 => Self::TypeScript(number),
            4..=5 => Self::PythonCall(number),
            6..=7 => Self::TypeScriptCall(number),
            8 => Self::Search,
            _ => Self::List,
        }
    }

    async fn ask(self, connection: &mut Connection) -> std::io::Result<Answer> {
        let (language, code) = match self {
            Self::Python(number) => ("python", format!("{number} * 7 + 1")),
            Self::TypeScript(number) => ("typescript", format!("{number} * 7 + 1")),
            Self::PythonCall(number) => {
                ("python", format!("from mcp_tools.fixture import add\nadd(a={number} * 7, b=1)['sum']"))
            }
            Self::TypeScriptCall(number) => {
                ("typescript", format!("(await fixture.add({{a: {number} * 7, b: 1}})).sum"))
            }
            Self::Search => {
                return connection.call("search_tools", json!({"query": "add two numbers"})).await;
            }
            Self::List => return connection.request("tools/list", None, json!({})).await,
        };
        connection.call("run_code", json!({"language": language, "code": code})).await
    }

    fn judge(self, answer: &Answer) -> Result<(), &'static str> {
        if answer.status != 200 {
            return Err("refused");
        }
        let result = &answer.message["result"];
        let content = &result["structuredContent"];
        let right = match self {
            Self::Python(number)
            | Self::TypeScript(number)
            | Self::PythonCall(number)
            | Self::TypeScriptCall(number) => {
                content["status"] == "ok" && content["value"] == u64::from(number) * 7 + 1
            }
            Self::Search => content["tools"][0]["tool"] == "add",
            Self::List => result["tools"].as_array().is_some_and(|tools: &Vec<Value>| tools.len() == 3),
        };
        if right { Ok(()) } else { Err("a wrong answer") }
    }
}
