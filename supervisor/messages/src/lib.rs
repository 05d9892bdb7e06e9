//! The messages between the front and the engine.
//!
//! The front speaks MCP with AI clients; the engine runs programs and calls upstream servers. Neither uses a type of
//! the other: they exchange the messages of this crate, and each message can be serialized as JSON. If both are in
//! one process, a message is a function call, and a debug build serializes and parses each message. If the engine is
//! in another process, [`frames`] carries the messages over a socket.
//!
//! The first message of a front is [`ToEngine::Hello`] with its protocol version. Each [`Request`] opens an exchange
//! of messages, which has any number of events and inputs and ends with one [`Response`].
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod caller;
mod direct;
mod front_counters;
mod lifecycle_state;
mod message;
mod question;
mod request_claims;
mod run;
mod trace_context;
mod user_answers;

pub use caller::Caller;
pub use direct::{
    BUILT_IN_TOOL_NAMES, CallOutcome, DirectAction, DirectCall, DirectTarget, ForwardedNotification,
    JsonRpcError, ListChanges, ListKind,
};
pub use front_counters::{FrontCounters, HttpRefusal};
pub use lifecycle_state::LifecycleState;
pub use message::{
    BuiltinTool, BuiltinTools, Event, ExchangeId, FrontSettings, Input, Repetition, Request, Response,
    RunReference, SearchRequest, ToEngine, ToFront, VERSION,
};
pub use question::{Question, QuestionKind};
pub use request_claims::{Claim, RequestClaims};
pub use run::{FinishedRun, Media, Progress, RESULT_URI_PREFIX, ResultFile, RunCode, RunState, RunView};
pub use trace_context::{SpanId, SpanOutcome, ToolCallSpan, TraceContext};
pub use user_answers::{Answer, AskError, InputSupport, OpenQuestion, QUESTIONS_MAX, UserWait};
