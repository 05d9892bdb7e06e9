//! A client over standard streams that reads what comes byte for byte.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

const HANGS_AFTER: Duration = Duration::from_secs(60);

/// A server, and both ends of its streams. It is killed when this is dropped.
pub struct Pipe {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Pipe {
    pub fn open(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { _child: child, stdin, lines }
    }

    /// With the handshake of an older era.
    pub async fn initialized(command: Command, able: Value) -> Self {
        let mut pipe = Self::open(command);
        let us = json!({"name": "lockhouse-tests", "version": "0"});
        let parameters = json!({"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": us});
        pipe.ask(&super::legacy(0, "initialize", parameters)).await;
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        pipe
    }

    pub async fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.expect("written");
        self.stdin.flush().await.expect("flushed");
    }

    /// The next line.
    pub async fn line(&mut self) -> String {
        let line = tokio::time::timeout(HANGS_AFTER, self.lines.next_line()).await.expect("hung: a line");
        line.expect("a line").expect("no end of the stream")
    }

    /// The next line that has these words in it.
    pub async fn line_with(&mut self, words: &str) -> String {
        loop {
            let line = self.line().await;
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The line that answers a request.
    pub async fn ask(&mut self, request: &Value) -> String {
        self.send(request).await;
        loop {
            let line = self.line().await;
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == request["id"] && message.get("method").is_none() {
                return line;
            }
        }
    }

    /// The same, read.
    pub async fn answer(&mut self, request: &Value) -> Value {
        serde_json::from_str(&self.ask(request).await).expect("JSON")
    }
}
