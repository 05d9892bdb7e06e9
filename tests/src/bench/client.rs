//! The benchmark's minimal MCP client, over the standard streams of a `lockhouse serve` process or of the gateway.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use super::Fallible;
use super::cpu_time::CpuTime;
use super::workloads::Row;

/// The time limit of one answer in milliseconds, after which the measurement fails.
const ANSWER_TIMEOUT_MS: u16 = 60_000;

pub(crate) struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    /// Starts an MCP server with `command` and initializes the connection.
    pub(crate) fn start(mut command: Command) -> Fallible<Self> {
        let program = command.get_program().display().to_string();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let to = child.stdin.take().ok_or("no stdin")?;
        let from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut client = Self { child, to, from, last_id: 0 };
        let parameters = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        client.send("initialize", &parameters)?;
        client.receive().map_err(|error| format!("{program}: {error}"))?;
        writeln!(client.to, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// Returns the CPU time that the supervisor and its workers have used so far.
    pub(crate) fn cpu_time(&self) -> CpuTime {
        CpuTime::of(self.child.id())
    }

    /// Returns the most memory that the supervisor has used, in MB.
    pub(crate) fn peak_memory_mb(&self) -> Fallible<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        Ok(kib.ok_or("no VmHWM")?.trim().parse::<u64>()? * 1024 / 1_000_000)
    }

    fn send(&mut self, method: &str, parameters: &Value) -> Fallible<u64> {
        self.last_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters});
        self.to.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.last_id)
    }

    /// Receives the next answer. Notifications, such as that of a changed list of tools, are skipped.
    fn receive(&mut self) -> Fallible<String> {
        loop {
            let line = self.receive_line()?;
            if !line.contains("\"method\":\"notifications/") {
                return Ok(line);
            }
        }
    }

    fn receive_line(&mut self) -> Fallible<String> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            if self.from.buffer().is_empty() {
                let mut readable = [PollFd::new(self.from.get_ref().as_fd(), PollFlags::POLLIN)];
                if poll(&mut readable, PollTimeout::from(ANSWER_TIMEOUT_MS))? == 0 {
                    return Err(format!("no answer within {ANSWER_TIMEOUT_MS} ms").into());
                }
            }
            let chunk = self.from.fill_buf()?;
            if chunk.is_empty() {
                return Err("the connection was closed".into());
            }
            let bytes = chunk.iter().position(|byte| *byte == b'\n').map_or(chunk.len(), |end| end + 1);
            line.extend_from_slice(&chunk[..bytes]);
            self.from.consume(bytes);
        }
        Ok(String::from_utf8(line)?)
    }

    /// Makes the request of `row`, a row of the benchmark's table, once, and returns the time from request to answer.
    /// Fails if the answer does not have the expected value.
    pub(crate) fn run(&mut self, row: &Row) -> Fallible<Duration> {
        let started = Instant::now();
        self.send("tools/call", &row.call)?;
        let line = self.receive()?;
        let took = started.elapsed();
        // Parsing the answer is not part of the measured time.
        let answer: Value = serde_json::from_str(&line)?;
        match answer.pointer(row.value_at) {
            Some(value) if *value == row.expected => Ok(took),
            _ => Err(format!("{}: {line:.1000}", row.name).into()),
        }
    }

    /// Makes the request of `row` `runs` times in sequence, with its pause before each run, and returns the time of each
    /// run from request to answer.
    pub(crate) fn times(&mut self, row: &Row, runs: usize) -> Fallible<Vec<Duration>> {
        let timed = |_| {
            std::thread::sleep(row.pause);
            self.run(row)
        };
        (0..runs).map(timed).collect()
    }

    /// Makes the request of `row` `runs` times, with `at_a_time` runs in flight, and returns the elapsed time from the
    /// first request to the last answer.
    pub(crate) fn together(&mut self, row: &Row, at_a_time: usize, runs: usize) -> Fallible<Duration> {
        let value = format!("\"value\":{}", row.expected);
        let started = Instant::now();
        for _ in 0..at_a_time.min(runs) {
            self.send("tools/call", &row.call)?;
        }
        for answered in 0..runs {
            let line = self.receive()?;
            if !line.contains(&value) {
                return Err(line.into());
            }
            if answered + at_a_time < runs {
                self.send("tools/call", &row.call)?;
            }
        }
        Ok(started.elapsed())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
