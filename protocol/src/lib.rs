//! The messages between the supervisor, zygotes and workers, and the decisions about them.
//!
//! ```text
//! supervisor ──ToZygote──► zygote     Prepare once, then Fork as often as needed
//! supervisor ◄─FromZygote─ zygote     Prepared | Refused, then Forked (with two descriptors) and Exited
//! supervisor ──ToWorker──► worker     Run, then a Reply to each Request; in a session, any number of runs
//! supervisor ◄─FromWorker─ worker     Ready | Refused, then for each Run any Output and Request, and Done
//! ```
//!
//! # Parts
//!
//! - [`frame`] encodes and decodes frames. A frame is a length and one message.
//! - [`worker_messages`] and [`zygote_messages`] have the messages, named by direction.
//! - [`conversation`] is the supervisor's side of the protocol with one worker, as a state machine: each message
//!   becomes an [`Action`] or a [`Violation`].
//! - [`FailureCode`] and [`CallOutcome`] are declared once, in the table of `failure_code.rs`. Answers, JSON-RPC
//!   errors, audit records and metrics follow from its rows. The order of the rows is part of the wire format.
//! - [`sandbox_profile`] has the limits and ids of a worker, [`protection`] what a zygote found when it tested the
//!   sandbox.
//! - [`id`] has ids and names, which are validated when they are constructed or decoded.
//! - [`json_text`] and [`search_options`] have what both sides do with JSON text and with the options of a search.
//!
//! # Invariants
//!
//! - Nothing in this crate does I/O, reads a clock or starts a thread.
//! - No file but `frame.rs` names bincode.
//! - No message is decoded before its length was checked. No decoder allocates more than the frame has bytes.
//! - No violation is forgiven: the supervisor kills the worker.
//! - Nothing here parses the JSON values of a message. They are bytes, which only the gate and the interpreter parse.
//!
//! # Decisions
//!
//! - A worker is assumed to be hostile, so the conversation is a pure state machine: tables, property tests and a
//!   fuzzer can test it without a process.
//! - Values are not split over frames. The configured limit (`frame_kib`) is the limit of a value, and a frame may have
//!   64 KiB more for names ([`FRAME_OVERHEAD_BYTES`]). So a value within the limit always fits one frame, and the error
//!   `result_too_large` depends on the configured limit alone.
//! - There are two limits for parallel calls. The language engine queues calls above `parallel_calls`; a worker with
//!   more calls in flight violates the protocol. So the supervisor never holds more than that many replies.

pub mod conversation;
mod failure_code;
pub mod frame;
pub mod id;
pub mod json_text;
mod language;
pub mod protection;
mod reply_encoding;
pub mod sandbox_profile;
pub mod search_options;
pub mod worker_messages;
pub mod zygote_messages;

pub use conversation::{Action, Conversation, ExceededLimit, LOOKUPS_MAX, Violation};
pub use failure_code::{CallOutcome, Delivery, FailureCode};
pub use frame::{FrameDecoder, FrameError};
pub use id::{
    CallId, ExecutionId, InvalidName, InvalidText, PromptName, ResourceUri, ResultHandle, ServerName,
    SkillName, ToolName,
};
pub use language::Language;
pub use protection::{Finding, Protection, Verdict};
pub use sandbox_profile::{ConversationLimits, FRAME_OVERHEAD_BYTES, PythonPackages, SandboxProfile};
pub use search_options::{SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SearchDetail};
pub use worker_messages::{
    CodeError, DecodedArgument, Failure, FileSource, FileTarget, FromWorker, Job, Outcome, PLANNED_CALLS_MAX,
    PlannedCall, Reply, Stream, ToWorker, WorkerRequest,
};
pub use zygote_messages::{
    Exit, FromZygote, LoadedPackage, SECCOMP_FILTERS, STACK_OVERFLOW_STATUS, ToZygote,
};
