//! An AI client over standard input and output that reads the lines of `lockhouse serve` unparsed, for tests that
//! compare bytes.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A running MCP server process, with its standard input and output. Dropping the value kills the process.
pub(crate) struct Pipe {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Pipe {
    pub(crate) fn open(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { child, stdin, lines }
    }

    /// Starts an MCP server and completes the `initialize` handshake, in which the client declares the capabilities
    /// `able`.
    pub(crate) async fn initialized(command: Command, able: Value) -> Self {
        let mut pipe = Self::open(command);
        let us = json!({"name": "lockhouse-tests", "version": "0"});
        let parameters = json!({"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": us});
        pipe.ask(&super::legacy(0, "initialize", parameters)).await;
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        pipe
    }

    /// Makes the server read its configuration and policy again.
    pub(crate) fn reload(&self) {
        let pid = self.child.id().expect("a process that has not ended");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGHUP)
            .expect("a signal");
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    /// Sends a line, which need not be a valid message.
    pub(crate) async fn send_line(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        self.stdin.flush().await.expect("flushed");
    }

    /// Reads the next line of the server's output. Panics if none arrives in time.
    pub(crate) async fn line(&mut self) -> String {
        let line =
            tokio::time::timeout(RESPONSE_TIMEOUT, self.lines.next_line()).await.expect("hung: a line");
        line.expect("a line").expect("no end of the stream")
    }

    /// Reads lines of the server's output until one contains `words`, and returns that line.
    pub(crate) async fn line_with(&mut self, words: &str) -> String {
        loop {
            let line = self.line().await;
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Sends an MCP request and returns the unparsed line with its response.
    pub(crate) async fn ask(&mut self, request: &Value) -> String {
        self.send(request).await;
        loop {
            let line = self.line().await;
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == request["id"] && message.get("method").is_none() {
                return line;
            }
        }
    }

    /// Sends an MCP request and returns its response as parsed JSON.
    pub(crate) async fn answer(&mut self, request: &Value) -> Value {
        serde_json::from_str(&self.ask(request).await).expect("JSON")
    }
}
