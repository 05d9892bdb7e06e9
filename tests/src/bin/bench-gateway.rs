//! The yardstick of the benchmark: a gateway that does only what running programs with tool calls requires. It has the
//! zygotes, the sandbox and the language engines of Lockhouse, but no validation, policy, audit log, limits and sessions.
//!
//! `bench-gateway ENGINES SERVER` speaks MCP over standard input and output. ENGINES is the directory of
//! `lockhouse-worker` and `liblockhouse_python.so`, and SERVER the upstream server `bench-echo`, which programs know as
//! `echo3`. The gateway trusts all of them: an invalid message ends it, and it waits until a message that has begun is
//! complete. One thread waits for all descriptors.

#[path = "../gateway/workers.rs"]
mod workers;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use lockhouse_protocol::{CallId, FromWorker, Outcome, WorkerRequest};
use lockhouse_tests::LANGUAGES;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use serde::Deserialize;
use serde_json::value::RawValue;
use workers::Workers;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// How long nothing must have happened before idle workers are forked, as in Lockhouse.
const QUIET: Duration = Duration::from_millis(5);

/// The name of the upstream server, and those of its tools that the benchmark uses, as in
/// [`Job::tools`](lockhouse_protocol::Job::tools).
const SERVER: &str = "echo3";
const TOOLS: &str = r#"[["echo3","add",{"name":"add","identifier":"add","parameters":["a","b"],"required":2,"summary":""}],["echo3","text",{"name":"text","identifier":"text","parameters":["bytes"],"required":1,"summary":""}]]"#;
const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench-gateway","version":"1"}}"#;

/// The numbers by which the event loop knows its descriptors: the AI client, the upstream server, the zygote of each
/// language, and the worker of each process id.
const CLIENT: u64 = 0;
const UPSTREAM: u64 = 1;
const FIRST_ZYGOTE: u64 = 2;
const FIRST_WORKER: u64 = FIRST_ZYGOTE + LANGUAGES.len() as u64;

/// A message of the AI client. A request without a program is `initialize`.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Parameters<'a>,
}

#[derive(Default, Deserialize)]
struct Parameters<'a> {
    #[serde(borrow)]
    arguments: Option<Program<'a>>,
}

#[derive(Deserialize)]
struct Program<'a> {
    language: &'a str,
    code: String,
}

/// The answer of the upstream server to a call.
#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: ToolResult<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(borrow)]
    content: [BTreeMap<&'a str, &'a RawValue>; 1],
}

struct Gateway {
    epoll: Epoll,
    /// The connection to the AI client.
    requests: BufReader<File>,
    answers: File,
    /// The connection to the upstream server.
    calls: ChildStdin,
    results: BufReader<ChildStdout>,
    workers: Workers,
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engines, server] = &arguments[..] else { return Err("usage: bench-gateway ENGINES SERVER".into()) };
    let mut server = Command::new(server).arg("3").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut gateway = Gateway {
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
        requests: BufReader::new(File::from(std::io::stdin().as_fd().try_clone_to_owned()?)),
        answers: File::from(std::io::stdout().as_fd().try_clone_to_owned()?),
        calls: server.stdin.take().ok_or("no stdin")?,
        results: BufReader::with_capacity(1 << 16, server.stdout.take().ok_or("no stdout")?),
        workers: Workers::start(engines),
    };
    watch(&gateway.epoll, gateway.requests.get_ref(), CLIENT)?;
    watch(&gateway.epoll, gateway.results.get_ref(), UPSTREAM)?;
    for (pool, number) in gateway.workers.pools.iter().zip(FIRST_ZYGOTE..) {
        watch(&gateway.epoll, &pool.zygote, number)?;
    }
    gateway.run()
}

/// Registers a descriptor with the number that the event loop gets when it is readable.
fn watch(epoll: &Epoll, descriptor: &impl AsFd, number: u64) -> nix::Result<()> {
    epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number))
}

impl Gateway {
    fn run(&mut self) -> Fallible<()> {
        let mut events = [EpollEvent::empty(); 64];
        let mut line = Vec::new();
        loop {
            let lacks_idle = self.workers.lacks_idle();
            let timeout = if lacks_idle { EpollTimeout::try_from(QUIET)? } else { EpollTimeout::NONE };
            let count = self.epoll.wait(&mut events, timeout)?;
            if count == 0 {
                self.workers.fork_idle();
            }
            for event in &events[..count] {
                match event.data() {
                    CLIENT => self.handle_requests(&mut line)?,
                    UPSTREAM => self.handle_results(&mut line)?,
                    zygote @ ..FIRST_WORKER => {
                        if let Some((pid, channel)) =
                            self.workers.receive_fork((zygote - FIRST_ZYGOTE) as usize)
                        {
                            watch(&self.epoll, channel, FIRST_WORKER + pid as u64)?;
                        }
                    }
                    worker => self.handle_worker((worker - FIRST_WORKER) as i32)?,
                }
            }
        }
    }

    /// Handles the messages of the AI client that have arrived.
    fn handle_requests(&mut self, line: &mut Vec<u8>) -> Fallible<()> {
        loop {
            line.clear();
            self.requests.read_until(b'\n', line)?;
            let Message { id, params } = serde_json::from_slice(line)?;
            match (id, params.arguments) {
                (Some(id), Some(Program { language, code })) => {
                    let language = LANGUAGES.iter().position(|name| *name == language);
                    self.workers.submit(language.ok_or("unknown language")?, id.get(), code)?;
                }
                (Some(id), None) => self.answer(id.get(), INITIALIZED)?,
                (None, _) => {}
            }
            if self.requests.buffer().is_empty() {
                return Ok(());
            }
        }
    }

    fn answer(&mut self, id: &str, result: &str) -> Fallible<()> {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        Ok(self.answers.write_all(line.as_bytes())?)
    }

    /// Passes the results that have arrived to the workers, in the envelope that Lockhouse uses.
    fn handle_results(&mut self, line: &mut Vec<u8>) -> Fallible<()> {
        loop {
            line.clear();
            self.results.read_until(b'\n', line)?;
            let Answer { id, result } = serde_json::from_slice(line)?;
            let envelope = match (result.structured_content, result.content) {
                (Some(structured), _) => [r#"{"structured":"#, structured.get(), "}"],
                (None, [block]) => [r#"{"text":"#, block["text"].get(), r#","decode":true}"#],
            };
            self.workers.reply((id >> 32) as i32, CallId(id as u32), &envelope)?;
            if self.results.buffer().is_empty() {
                return self.workers.flush();
            }
        }
    }

    fn handle_worker(&mut self, pid: i32) -> Fallible<()> {
        let is_warming_up = self.workers.by_pid.get(&pid).is_some_and(|worker| worker.request.is_empty());
        let mut calls = Vec::new();
        for message in self.workers.receive(pid)? {
            match message {
                FromWorker::Ready => self.workers.make_ready(pid, false)?,
                FromWorker::Done(_) if is_warming_up => self.workers.make_ready(pid, true)?,
                FromWorker::Request { call, request: WorkerRequest::Call { .. } } if is_warming_up => {
                    self.workers.reply(pid, call, &[r#"{"structured":{"sum":3}}"#])?;
                }
                FromWorker::Request { call, request: WorkerRequest::Call { tool, arguments, .. } } => {
                    // The id says whom the result is for.
                    let id = (pid as u64) << 32 | u64::from(call.0);
                    write!(calls, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":"#)?;
                    write!(calls, r#"{{"name":"{tool}","arguments":"#)?;
                    calls.extend_from_slice(&arguments);
                    calls.extend_from_slice(b"}}\n");
                }
                FromWorker::Request { call, request: WorkerRequest::CheckCalls { .. } } => {
                    self.workers.reply(pid, call, &[r#"{"findings":[],"tools":[]}"#])?;
                }
                FromWorker::Done(Outcome::Value(Some(json))) => {
                    let value = std::str::from_utf8(&json)?;
                    let result = format!(r#"{{"content":[],"structuredContent":{{"value":{value}}}}}"#);
                    let worker = self.workers.by_pid.remove(&pid).ok_or("no worker")?;
                    self.answer(&worker.request, &result)?;
                }
                other => return Err(format!("{other:?}").into()),
            }
        }
        self.calls.write_all(&calls)?;
        self.workers.flush()
    }
}
