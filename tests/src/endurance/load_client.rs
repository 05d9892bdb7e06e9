//! Sends programs to a Lockhouse server, with a limited number of them in flight.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_tests::Session;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A connected AI client that counts its requests.
pub(crate) struct Client {
    session: Arc<Session>,
    requests: Cell<usize>,
}

impl Client {
    pub(crate) fn new(session: Session) -> Self {
        Self { session: Arc::new(session), requests: Cell::new(0) }
    }

    /// Returns the number of requests that the client has sent so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.get()
    }

    pub(crate) fn into_session(self) -> Session {
        Arc::into_inner(self.session).expect("no request is under way")
    }

    /// Runs the programs that `programs` returns, with at most `at_a_time` requests in flight, until `programs` returns
    /// `None` and all answers have arrived. Passes each answer to `on_answer`.
    pub(crate) async fn load(
        &self,
        at_a_time: usize,
        mut programs: impl FnMut() -> Option<Program>,
        mut on_answer: impl FnMut(ProgramAnswer),
    ) {
        let mut under_way = JoinSet::new();
        let mut ended = false;
        loop {
            while !ended && under_way.len() < at_a_time {
                match programs() {
                    Some(program) => {
                        self.requests.set(self.requests.get() + 1);
                        under_way.spawn(run(self.session.clone(), program));
                    }
                    None => ended = true,
                }
            }
            match under_way.join_next().await {
                Some(answered) => on_answer(answered.expect("a task that does not panic")),
                None => return,
            }
        }
    }
}

/// A request to run a program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The consecutive number of the program in its endurance suite.
    pub(crate) number: usize,
    pub(crate) language: &'static str,
    pub(crate) code: String,
    pub(crate) timeout: Option<Duration>,
}

/// The answer to the request to run one program, with its timing.
#[derive(Debug)]
pub(crate) struct ProgramAnswer {
    pub(crate) program: Program,
    pub(crate) sent: Instant,
    /// The time from request to answer by the client's clock, which includes the wait for a worker.
    pub(crate) took: Duration,
    /// The structured content of the answer, or the reason why there is none.
    pub(crate) answer: Result<Value, String>,
}

impl ProgramAnswer {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        let answer = self.answer.as_ref().ok();
        answer.and_then(|answer| answer.pointer(pointer)?.as_str()).unwrap_or_default()
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.text("/status") == "ok"
    }

    /// Formats the language and code of the program and the first 300 characters of its answer, for a report.
    pub(crate) fn to_text(&self) -> String {
        let Program { language, code, .. } = &self.program;
        let answer = self.answer.as_ref().map_or_else(Clone::clone, Value::to_string);
        let answer: String = answer.chars().take(300).collect();
        format!("{language} {code:?} gave {answer}")
    }
}

async fn run(session: Arc<Session>, program: Program) -> ProgramAnswer {
    let mut arguments = json!({"language": program.language, "code": program.code});
    if let Some(timeout) = program.timeout {
        arguments["timeout_s"] = timeout.as_secs_f64().into();
    }
    let sent = Instant::now();
    // Spawned as a task so that the panic of a call that hangs is counted here as a missing answer.
    let calling = tokio::spawn(async move { session.call("run_code", arguments).await });
    let answer = match calling.await {
        Ok(Ok(result)) => result.structured_content.ok_or_else(|| "a result without content".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    ProgramAnswer { program, sent, took: sent.elapsed(), answer }
}
