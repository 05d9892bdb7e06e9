//! `make bench`: times at the MCP boundary, as an AI client sees them, against the built `lockhouse serve`.
//!
//! The client here writes and reads bare lines, so that its own cost stays small beside what it measures. All figures of
//! a table come from one run on one machine; compare them with each other, and with another machine's only as ratios.

#![allow(clippy::print_stdout)] // A table is what it is for.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

const PACE: Duration = Duration::from_millis(20);
const TRIVIAL: [(&str, &str); 2] = [("python", "1+1"), ("typescript", "1+1")];
const ONE_CALL: [(&str, &str); 2] = [
    ("python", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']"),
    ("typescript", "(await fixture.add({a: 1, b: 2})).sum"),
];
const SEQUENCE: [(&str, &str); 2] = [
    ("python", "from mcp_tools.fixture import add\nsum(add(a=i, b=1)['sum'] for i in range(100))"),
    ("typescript", "let s = 0; for (let i = 0; i < 100; i++) s += (await fixture.add({a: i, b: 1})).sum;\ns"),
];
const PARALLEL: [(&str, &str); 2] = [
    (
        "python",
        "import asyncio\nfrom mcp_tools.aio.fixture import add\n\
         sum(r['sum'] for r in await asyncio.gather(*[add(a=i, b=1) for i in range(100)]))",
    ),
    (
        "typescript",
        "(await Promise.all(Array.from({length: 100}, (_, i) => fixture.add({a: i, b: 1})))).reduce((s, r) => s + r.sum, 0)",
    ),
];

fn main() -> Fallible<()> {
    let directory = std::env::current_exe()?.parent().map(Path::to_owned).ok_or("no directory")?;
    let lockhouse =
        std::env::var_os("LOCKHOUSE_BIN").map_or_else(|| directory.join("lockhouse"), PathBuf::from);
    let scratch = tempfile::tempdir()?;
    let fixture = directory.join("fixture-server");
    let servers = json!({"mcpServers": {"fixture": {"command": fixture}}});
    std::fs::write(scratch.path().join("servers.json"), servers.to_string())?;
    std::fs::write(scratch.path().join("policy.toml"), "version = 1\n[servers.fixture]\nallow = [\"*\"]\n")?;

    println!("lockhouse at the MCP stdio boundary; times in ms\n");
    println!("{:44}  {:>7}  {:>7}  {:>7}  {:>6}", "", "p50", "p95", "p99", "runs");
    for (language, code) in TRIVIAL {
        let started = Instant::now();
        let mut client = Client::start(&lockhouse, scratch.path())?;
        client.run(language, code, &json!(2))?;
        println!(
            "{:44}  {:>7.1}",
            format!("{language}: first result after start"),
            millis(started.elapsed())
        );
    }
    let mut client = Client::start(&lockhouse, scratch.path())?;
    for (language, code) in ONE_CALL {
        client.run(language, code, &json!(3))?;
    }
    let cases: [(&str, [(&str, &str); 2], Value, usize); 4] = [
        ("1+1", TRIVIAL, json!(2), 200),
        ("one tool call", ONE_CALL, json!(3), 200),
        ("100 tool calls in sequence", SEQUENCE, json!(5050), 30),
        ("100 tool calls in parallel", PARALLEL, json!(5050), 30),
    ];
    for (name, programs, expected, runs) in &cases {
        for (language, code) in programs {
            for (pace, paced) in [(Duration::ZERO, "back to back"), (PACE, "paced by 20 ms")] {
                let times = client.times(language, code, expected, *runs, pace)?;
                row(&format!("{language}: {name}, {paced}"), times);
            }
        }
    }
    println!("\nexecutions of 1+1 per second, 8 at a time");
    for (language, code) in TRIVIAL {
        println!("  {language}: {:.0}", client.throughput(language, code, 8, 1_000)?);
    }
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| millis(times[(times.len() * percent / 100).min(times.len() - 1)]);
    println!("{name:44}  {:>7.2}  {:>7.2}  {:>7.2}  {:>6}", at(50), at(95), at(99), times.len());
}

/// A bare MCP client over a child's standard streams.
struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    fn start(lockhouse: &Path, scratch: &Path) -> Fallible<Self> {
        let mut child = Command::new(lockhouse)
            .arg("serve")
            .args(["--servers".as_ref(), scratch.join("servers.json").as_os_str()])
            .args(["--policy".as_ref(), scratch.join("policy.toml").as_os_str()])
            .env("XDG_STATE_HOME", scratch.join("state"))
            .env("XDG_CONFIG_HOME", scratch.join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take().ok_or("no stdin")?;
        let from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut client = Self { child, to, from, last_id: 0 };
        let parameters = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        client.send("initialize", parameters)?;
        client.receive()?;
        writeln!(client.to, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    fn send(&mut self, method: &str, parameters: Value) -> Fallible<u64> {
        self.last_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters});
        self.to.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.last_id)
    }

    fn send_code(&mut self, language: &str, code: &str) -> Fallible<u64> {
        self.send(
            "tools/call",
            json!({"name": "run_code", "arguments": {"language": language, "code": code}}),
        )
    }

    fn receive(&mut self) -> Fallible<String> {
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err("lockhouse closed the connection".into()),
            _ => Ok(line),
        }
    }

    fn run(&mut self, language: &str, code: &str, expected: &Value) -> Fallible<Duration> {
        let started = Instant::now();
        self.send_code(language, code)?;
        let line = self.receive()?;
        let took = started.elapsed();
        // Parsed after the clock stopped.
        let answer: Value = serde_json::from_str(&line)?;
        match answer.pointer("/result/structuredContent/value") {
            Some(value) if value == expected => Ok(took),
            _ => Err(format!("{language}: {line}").into()),
        }
    }

    fn times(
        &mut self,
        language: &str,
        code: &str,
        expected: &Value,
        runs: usize,
        pace: Duration,
    ) -> Fallible<Vec<Duration>> {
        let mut times = Vec::new();
        for _ in 0..runs {
            std::thread::sleep(pace);
            times.push(self.run(language, code, expected)?);
        }
        Ok(times)
    }

    fn throughput(&mut self, language: &str, code: &str, at_a_time: usize, runs: usize) -> Fallible<f64> {
        let started = Instant::now();
        for _ in 0..at_a_time {
            self.send_code(language, code)?;
        }
        for answered in 0..runs {
            let line = self.receive()?;
            if !line.contains("\"value\":2") {
                return Err(line.into());
            }
            if answered + at_a_time < runs {
                self.send_code(language, code)?;
            }
        }
        Ok(runs as f64 / started.elapsed().as_secs_f64())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
