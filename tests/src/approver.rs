//! Somebody at `lockhouse approvals --json`.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::Lockhouse;

const PATIENCE: Duration = Duration::from_secs(20);

/// The process, and what it says. It is killed when this is dropped.
#[derive(Debug)]
pub struct Approver {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl Approver {
    /// Starts it, for the supervisors of this Lockhouse.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(lockhouse: &Lockhouse) -> Self {
        let mut command = tokio::process::Command::from(lockhouse.command(&["approvals", "--json"]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("its standard output");
        let stdin = child.stdin.take().expect("its standard input");
        Self { _child: child, lines: BufReader::new(stdout).lines(), stdin }
    }

    /// Starts it, and waits until a supervisor knows of it.
    pub async fn watching(lockhouse: &Lockhouse) -> Self {
        let mut approver = Self::start(lockhouse);
        approver.next("watching").await;
        approver
    }

    /// The next message that has this name.
    ///
    /// # Panics
    /// If there is none in time.
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
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("no {name}"))
    }

    /// Answers a question: `approve` or `decline`.
    pub async fn answer(&mut self, asked: &Value, decision: &str, scope: &str) {
        let (id, digest) = (&asked["ask"]["id"], &asked["ask"]["digest"]);
        let answer = json!({"id": id, "digest": digest, "decision": decision, "scope": scope});
        self.say(&json!({"supervisor": asked["supervisor"], "answer": answer})).await;
    }

    /// Writes any line.
    ///
    /// # Panics
    /// If it does not read any more.
    pub async fn say(&mut self, line: &Value) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        self.stdin.flush().await.expect("written");
    }
}
