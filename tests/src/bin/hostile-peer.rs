//! A replacement for `lockhouse-worker` whose sandboxed workers misbehave on request: the code that a worker receives
//! names a behaviour, or a tool of the fixture server and its arguments. The zygote and the sandbox are those of
//! Lockhouse.
//!
//! If the program is started under a name that [`before_code`] knows, it misbehaves before it receives code. With
//! `--list` it prints the names of its behaviours.
#![allow(clippy::print_stdout, reason = "a test reads the list")]

#[path = "../peer/before_code.rs"]
mod before_code;
#[path = "../peer/behaviours.rs"]
mod behaviours;
#[path = "../peer/raw_channel.rs"]
mod raw_channel;

use std::process::ExitCode;

use lockhouse_protocol::{CodeError, Job, Outcome, SandboxProfile};
use lockhouse_sandbox::{Layers, Sandboxed};
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::tool_host::ToolHost;

use raw_channel::RawChannel;

/// The language engine of the hostile worker. It runs no code, but executes the behaviour that the received code
/// names.
struct Peer {
    called: String,
    channel: Option<RawChannel>,
}

impl Engine for Peer {
    fn prepare(&mut self, _: &SandboxProfile) -> Result<PreparedEngine, EngineError> {
        before_code::prepare(&self.called).map(PreparedEngine::from)
    }

    fn after_fork(&mut self) {}

    fn attach(&mut self, _: &Sandboxed, host: &'static dyn ToolHost, _: u64) {
        let channel = RawChannel::new(host);
        before_code::attach(&self.called, &channel);
        self.channel = Some(channel);
    }

    fn warm(&mut self, _: &Sandboxed) {}

    fn run(&mut self, _: &Sandboxed, job: &Job) -> Outcome {
        let behaviour = behaviours::ALL.iter().find(|(name, _)| *name == job.code);
        if let (Some(call), Some(channel)) = (job.code.strip_prefix("call "), &self.channel) {
            return behaviours::called(channel, call);
        }
        match (behaviour, &self.channel) {
            (Some((_, behave)), Some(channel)) => behave(channel),
            _ => Outcome::Error(CodeError { message: "no such behaviour".into(), ..CodeError::default() }),
        }
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == "--list") {
        behaviours::ALL.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let program = std::env::args().next().unwrap_or_default();
    let called = program.rsplit('/').next().unwrap_or_default().to_owned();
    match lockhouse_worker::zygote::run(&mut Peer { called, channel: None }, Layers::ALL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
