//! An AI client that reads every line that Lockhouse writes and counts the answers to each request, so it detects
//! missing and duplicate answers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

const HANGS_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: JoinHandle<String>,
    /// The number of answers to each request; the index is the request id.
    answers: Vec<usize>,
}

impl Client {
    pub(super) fn connect(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let mut errors = child.stderr.take().expect("stderr");
        let (to, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if to.send(message).is_err() {
                    return;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        let mut client = Self { child, stdin, lines, stderr, answers: Vec::new() };
        let info = json!({"name": "hostile-peers", "version": "0"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let id = client.send("initialize", hello);
        client.wait_for(&[id]);
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a program in a `run_code` request and returns the id of the request. `timeout_s` is the timeout of the run
    /// in seconds; `None` for the configured one. [`Self::wait_for`] waits for the answer.
    pub(super) fn start(&mut self, language: &str, code: &str, timeout_s: Option<f64>) -> usize {
        let mut arguments = json!({"language": language, "code": code});
        if let Some(timeout_s) = timeout_s {
            arguments["timeout_s"] = timeout_s.into();
        }
        self.send("tools/call", json!({"name": "run_code", "arguments": arguments}))
    }

    /// Runs a program to its end and returns its answer.
    pub(super) fn run(&mut self, language: &str, code: &str) -> Value {
        let id = self.start(language, code, None);
        self.wait_for(&[id]).remove(&id).expect("its answer")
    }

    /// Waits for the answers to the requests with these ids. Returns the structured content of each answer, or the
    /// whole message if it has none.
    pub(super) fn wait_for(&mut self, ids: &[usize]) -> BTreeMap<usize, Value> {
        let mut answers = BTreeMap::new();
        while answers.len() < ids.len() {
            let message = self.lines.recv_timeout(HANGS_AFTER);
            let mut message = message.unwrap_or_else(|_| {
                panic!("{:?} of {ids:?} have no answer", ids.iter().filter(|id| !answers.contains_key(*id)))
            });
            if let Some(id) = self.record_answer(&message) {
                let content = message["result"]["structuredContent"].take();
                answers.insert(id, if content.is_null() { message } else { content });
            }
        }
        answers
    }

    /// Closes the connection and waits until Lockhouse has exited. Returns its standard error, and the id and number of
    /// answers of each request that did not get exactly one answer.
    pub(super) fn close(mut self) -> (String, Vec<(usize, usize)>) {
        drop(self.stdin.take());
        // Reads the remaining output.
        while let Ok(message) = self.lines.recv_timeout(HANGS_AFTER) {
            self.record_answer(&message);
        }
        assert!(self.child.wait().expect("a status").success());
        let not_one = self.answers.iter().copied().enumerate().filter(|(_, count)| *count != 1);
        (self.stderr.join().expect("its text"), not_one.collect())
    }

    fn send(&mut self, method: &str, params: Value) -> usize {
        let id = self.answers.len();
        self.answers.push(0);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open connection");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }

    /// Counts a message as an answer and returns the id of its request. Returns `None` if the message is not an answer.
    fn record_answer(&mut self, message: &Value) -> Option<usize> {
        let id = message["id"].as_u64().filter(|_| message["method"].is_null())? as usize;
        self.answers[id] += 1;
        Some(id)
    }
}
