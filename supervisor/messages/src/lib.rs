//! What the front and the engine say to each other.
//!
//! The front speaks MCP with AI clients; the engine runs programs and calls servers. Neither names a type of the other: they
//! exchange the messages of this crate, and each message can be written as JSON. In one process a message is a function call.
//! A debug build writes and reads each message on its way, so that every test that passes through the front shows that nothing
//! but these messages is needed, and that a socket between the two would do.
//!
//! The first message of a front is [`ToEngine::Hello`] with the version that it speaks. Each [`Request`] opens an exchange, which
//! has any number of events and inputs, and ends with one [`Response`].
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod caller;
mod client;
mod direct;
mod edge;
mod message;
mod person;
mod question;
mod run;

pub use caller::Caller;
pub use client::{EngineClient, Exchange, Step};
pub use direct::{Action, CallOutcome, Changed, DirectCall, List, Passed, TOOL_NAMES, Target};
pub use edge::{EngineEnd, FrontEnd};
pub use message::{
    Event, ExchangeId, FrontSettings, Input, Request, Response, RunName, Search, ToEngine, ToFront, VERSION,
};
pub use person::{Abilities, Answer, OpenQuestion, PersonWait, QUESTIONS_MAX, Unasked};
pub use question::{Mode, QUESTION_BYTES_MAX, Question, Unfit};
pub use run::{Course, EndedRun, File, RunCode, RunState, RunView};
