//! What a peer does before it has code, by the name that it was started under.

use lockhouse_protocol::{FromWorker, Outcome, Request, Stream};
use lockhouse_worker::engine::EngineError;
use nix::sys::signal::Signal;

use crate::wire::{Wire, request};

/// In the zygote.
pub(crate) fn prepare(called: &str) -> Result<String, EngineError> {
    match called {
        "refuses-to-start" => Err(EngineError::new("refuses to start\u{1b}[31m")),
        "ends-in-the-zygote" => std::process::exit(9),
        "has-a-long-name" => Ok("long ".repeat(20_000)),
        _ => Ok("hostile peer".into()),
    }
}

/// In the sealed worker, before it says that it is ready.
pub(crate) fn attach(called: &str, wire: &Wire) {
    let output = FromWorker::Output { stream: Stream::Stdout, text: "early".into() };
    match called {
        "prints-early" => wire.say(&output),
        "asks-early" => wire.say(&request(1, Request::ListServers)),
        "is-done-early" => wire.say(&FromWorker::Done(Outcome::Value(None))),
        "is-ready-twice" => wire.say(&FromWorker::Ready),
        "refuses-with-megabytes" => {
            wire.say(&FromWorker::Refused { reason: "no\u{1b}[31m ".repeat(1 << 18) })
        }
        "sends-garbage-early" => wire.write(&[0xff; 4096]),
        "exits-early" => std::process::exit(3),
        "crashes-early" => crate::wire::end_by(Signal::SIGSEGV),
        _ => {}
    }
}
