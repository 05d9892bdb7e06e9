//! The floor of the benchmark: the least that a server like Lockhouse must do for a run. A relay reads MCP messages
//! from standard input, passes the code of each `tools/call` over a socket pair to a process that was forked and
//! sandboxed ahead of need, and writes the answer of the process. The process answers every code with `2`.
//!
//! The zygote and the sandbox are those of Lockhouse. The relay checks nothing, records nothing, and has no event loop.
//! `make bench` measures the relay with the same client as `lockhouse serve`. The relay starts this program with
//! `--worker` as its zygote.
#![allow(clippy::print_stdout)] // Standard output is the MCP connection.

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;

use lockhouse_protocol::{
    ExecutionId, FrameDecoder, FromWorker, Job, Outcome, SandboxProfile, ToWorker, frame,
};
use lockhouse_tests::BareZygote;
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::sandbox::{Layers, Sandboxed};
use lockhouse_worker::tool_host::ToolHost;
use lockhouse_worker::zygote;
use serde_json::{Value, json};

/// Maximum size in bytes of a message between the relay and a process.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// The number of idle processes that the relay keeps ready.
const IDLE: usize = 2;

/// The language engine of the forked processes, which answers every code with `2`.
struct Constant;

impl Engine for Constant {
    fn prepare(&mut self, _profile: &SandboxProfile) -> Result<PreparedEngine, EngineError> {
        Ok("constant".to_owned().into())
    }

    fn after_fork(&mut self) {}

    fn attach(&mut self, _sandboxed: &Sandboxed, _host: &'static dyn ToolHost, _memory_bytes: u64) {}

    fn warm(&mut self, _sandboxed: &Sandboxed) {}

    fn run(&mut self, _sandboxed: &Sandboxed, _job: &Job) -> Outcome {
        Outcome::Value(Some(b"2".to_vec()))
    }
}

/// A forked process that has entered the sandbox and waits for code.
struct IdleProcess {
    pid: i32,
    channel: UnixStream,
    decoder: FrameDecoder,
}

impl IdleProcess {
    fn fork(zygote: &BareZygote) -> Result<Self, Box<dyn Error>> {
        let (pid, channel) = zygote.fork();
        let mut process = Self { pid, channel, decoder: FrameDecoder::new(FRAME_BYTES_MAX) };
        match process.receive()? {
            FromWorker::Ready => Ok(process),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn run(&mut self, code: String) -> Result<String, Box<dyn Error>> {
        let job = Job {
            execution: ExecutionId(1),
            code,
            servers: Vec::new(),
            session: false,
            check_only: false,
            tools: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
        };
        self.channel.write_all(&frame::encode(&ToWorker::Run(job), FRAME_BYTES_MAX)?)?;
        match self.receive()? {
            FromWorker::Done(Outcome::Value(Some(json))) => Ok(String::from_utf8(json)?),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn receive(&mut self) -> Result<FromWorker, Box<dyn Error>> {
        loop {
            if let Some(message) = self.decoder.next()? {
                return Ok(message);
            }
            match self.channel.read(self.decoder.space())? {
                0 => return Err("the process has exited".into()),
                count => self.decoder.received(count),
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--worker") {
        return Ok(zygote::run(&mut Constant, Layers::ALL)?);
    }
    let zygote = BareZygote::start(&std::env::current_exe()?, &["--worker"], None);
    let mut idle = Vec::new();
    while idle.len() < IDLE {
        idle.push(IdleProcess::fork(&zygote)?);
    }
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let mut message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id").cloned() else { continue };
        if message["method"] == "initialize" {
            let version = &message["params"]["protocolVersion"];
            let server = json!({"name": "floor", "version": "1"});
            let result =
                json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server});
            writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
            continue;
        }
        let Value::String(code) = message["params"]["arguments"]["code"].take() else {
            return Err("a call without code".into());
        };
        let mut process = idle.pop().ok_or("no idle process")?;
        let value = process.run(code)?;
        writeln!(
            output,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{value}"}}],"structuredContent":{{"value":{value}}}}}}}"#
        )?;
        output.flush()?;
        zygote.kill(process.pid);
        idle.push(IdleProcess::fork(&zygote)?);
    }
    Ok(())
}
