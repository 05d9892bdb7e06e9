//! How a hostile worker misbehaves before it receives code. The name under which its program was started selects the
//! behaviour.

use lockhouse_protocol::{FromWorker, Outcome, Stream, WorkerRequest};
use lockhouse_worker::engine::EngineError;
use nix::sys::signal::Signal;

use crate::raw_channel::{RawChannel, request};

/// Misbehaves in the zygote, while the zygote prepares. The behaviour is selected by `called`, the name under which the
/// program was started. Returns what the zygote reports as the name of its language engine.
pub(crate) fn prepare(called: &str) -> Result<String, EngineError> {
    match called {
        "refuses-to-start" => Err(EngineError::new("refuses to start\u{1b}[31m")),
        "ends-in-the-zygote" => std::process::exit(9),
        "has-a-long-name" => Ok("long ".repeat(20_000)),
        _ => Ok("hostile peer".into()),
    }
}

/// Misbehaves in the sandboxed worker, before the worker reports that it is ready. The behaviour is selected by
/// `called`, the name under which the program was started.
pub(crate) fn attach(called: &str, channel: &RawChannel) {
    let output = FromWorker::Output { stream: Stream::Stdout, text: "early".into() };
    match called {
        "prints-early" => channel.send(&output),
        "asks-early" => channel.send(&request(1, WorkerRequest::ListServers)),
        "is-done-early" => channel.send(&FromWorker::Done(Outcome::Value(None))),
        "is-ready-twice" => channel.send(&FromWorker::Ready),
        "refuses-with-megabytes" => {
            channel.send(&FromWorker::Refused { reason: "no\u{1b}[31m ".repeat(1 << 18) })
        }
        "sends-garbage-early" => channel.write(&[0xff; 4096]),
        "exits-early" => std::process::exit(3),
        "crashes-early" => crate::raw_channel::end_by(Signal::SIGSEGV),
        _ => {}
    }
}
