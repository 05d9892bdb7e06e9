//! Clients that behave: each asks, reads its answer, checks it, and thinks for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::figures::Figures;
use super::wire::{Answer, Connection, Era, HONEST};

/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// One for all its requests, in the era of the protocol that it speaks.
    Keeps(Era),
    /// A new one for each request, as a command of a script does; each request says everything itself.
    Reconnects,
}

/// Asks until the end of time, which the caller decides.
pub(crate) async fn behave(
    host: String,
    token: String,
    habit: Habit,
    think: Duration,
    figures: Arc<Figures>,
) {
    let era = if let Habit::Keeps(era) = habit { era } else { Era::Stateless };
    let mut connection = None;
    loop {
        tokio::time::sleep(think.mul_f64(fastrand::f64() * 2.0)).await;
        if habit == Habit::Reconnects {
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
                figures.lost(format!("connecting: {error}"));
                continue;
            }
        };
        let task = Task::any();
        match tokio::time::timeout(PATIENCE, task.ask(&mut opened)).await {
            Err(_) => figures.lost(format!("{task:?}: no answer in {PATIENCE:?}")),
            Ok(Err(error)) => figures.lost(format!("{task:?}: {error}")),
            Ok(Ok(answer)) => {
                match task.judge(&answer) {
                    Ok(()) => figures.answered(started.elapsed()),
                    Err(why) => {
                        figures.wrong(format!("{task:?}: {why}: {} {}", answer.status, answer.message))
                    }
                }
                connection = Some(opened);
            }
        }
    }
}

/// One thing that is asked, whose answer is known.
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
