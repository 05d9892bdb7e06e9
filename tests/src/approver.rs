//! An approver for tests: a running `lockhouse approvals --json` process whose questions the test answers.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::Lockhouse;

const MESSAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// A running `lockhouse approvals --json` process with its standard input and output. Dropping this kills the
/// process.
#[derive(Debug)]
pub struct Approver {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl Approver {
    /// Starts `lockhouse approvals --json` for the supervisors that use this test's state directory.
    ///
    /// # Panics
    /// If the process cannot be started.
    #[must_use]
    pub fn start(lockhouse: &Lockhouse) -> Self {
        Self::spawn(lockhouse.command(&["approvals", "--json"]))
    }

    /// Starts a command that runs `lockhouse approvals --json`.
    ///
    /// # Panics
    /// If the process cannot be started.
    #[must_use]
    pub fn spawn(command: std::process::Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("its standard output");
        let stdin = child.stdin.take().expect("its standard input");
        Self { _child: child, lines: BufReader::new(stdout).lines(), stdin }
    }

    /// Starts `lockhouse approvals --json` and waits until a supervisor has accepted it as an approver.
    pub async fn connected(lockhouse: &Lockhouse) -> Self {
        let mut approver = Self::start(lockhouse);
        approver.next("watching").await;
        approver
    }

    /// Waits for the next JSON message of the process that has the key `name`, and returns it; skips other messages.
    ///
    /// # Panics
    /// If no such message arrives within 20 seconds.
    pub async fn next(&mut self, name: &str) -> Value {
        let reading = async {
            loop {
                let line = self.lines.next_line().await.expect("readable").expect("a line");
                let message: Value = serde_json::from_str(&line).expect("JSON");
                if message.get(name).is_some() {
                    return message;
                }
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, reading).await.unwrap_or_else(|_| panic!("no {name}"))
    }

    /// Answers the approval request `question`. `decision` is `approve` or `decline`; `scope` is what an approval
    /// covers, such as `once` or `execution`.
    pub async fn answer(&mut self, question: &Value, decision: &str, scope: &str) {
        let (id, digest) = (&question["ask"]["id"], &question["ask"]["digest"]);
        let answer = json!({"id": id, "digest": digest, "decision": decision, "scope": scope});
        self.send_line(&json!({"supervisor": question["supervisor"], "answer": answer})).await;
    }

    /// Writes a raw JSON line to the standard input of the process.
    ///
    /// # Panics
    /// If the process has closed its standard input.
    pub async fn send_line(&mut self, line: &Value) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        self.stdin.flush().await.expect("written");
    }
}
