//! A stand-in for `lockhouse-worker` whose sealed workers misbehave on request: the code that a worker gets names what
//! it does, or a tool and its arguments. Its zygote and its seal are the real ones.
//!
//! Started under a name of [`early`] it misbehaves before it has any code. With `--list` it names its behaviours.
#![allow(clippy::print_stdout, clippy::too_many_lines)] // The list is for a test.

#[path = "../peer/behaviours.rs"]
mod behaviours;
#[path = "../peer/early.rs"]
mod early;
#[path = "../peer/wire.rs"]
mod wire;

use std::process::ExitCode;

use lockhouse_protocol::{CodeError, Job, Outcome};
use lockhouse_worker::engine::{Engine, EngineError};
use lockhouse_worker::sandbox::{Layers, Sandboxed};
use lockhouse_worker::tool_host::ToolHost;

use wire::Wire;

/// An engine without a language.
struct Peer {
    called: String,
    wire: Option<Wire>,
}

impl Engine for Peer {
    fn prepare(&mut self, _: &[String]) -> Result<String, EngineError> {
        early::prepare(&self.called)
    }

    fn after_fork(&mut self) {}

    fn attach(&mut self, _: &Sandboxed, host: &'static dyn ToolHost, _: u64) {
        let wire = Wire::new(host);
        early::attach(&self.called, &wire);
        self.wire = Some(wire);
    }

    fn warm(&mut self, _: &Sandboxed) {}

    fn run(&mut self, _: &Sandboxed, job: &Job) -> Outcome {
        let behaviour = behaviours::ALL.iter().find(|(name, _)| *name == job.code);
        if let (Some(call), Some(wire)) = (job.code.strip_prefix("call "), &self.wire) {
            return behaviours::called(wire, call);
        }
        match (behaviour, &self.wire) {
            (Some((_, behave)), Some(wire)) => behave(wire),
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
    match lockhouse_worker::zygote::run(&mut Peer { called, wire: None }, Layers::ALL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
