//! The messages between the supervisor, zygotes (processes that fork workers) and workers (processes that run submitted
//! code).
//!
//! ```text
//! supervisor ──ToZygote──► zygote     Prepare once, then Fork as often as needed
//! supervisor ◄─FromZygote─ zygote     Prepared | Refused, then Forked (with two descriptors) and Exited
//! supervisor ──ToWorker──► worker     Run, then a Reply to each Request; in a session, any number of runs
//! supervisor ◄─FromWorker─ worker     Ready | Refused, then for each Run any Output and Request, and Done
//! ```
//!
//! This crate contains data types and decisions about them: it has no I/O, no clock and no threads. A worker is assumed
//! to be hostile. So [`frame`] checks a length before it decodes a message, and [`conversation`] turns each message
//! into an action of the supervisor or into a [`Violation`], after which the worker is killed.

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
    PlannedCall, Reply, Request, Stream, ToWorker,
};
pub use zygote_messages::{
    Exit, FromZygote, LoadedPackage, SECCOMP_FILTERS, STACK_OVERFLOW_STATUS, ToZygote,
};
