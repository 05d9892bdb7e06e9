//! What supervisor, zygote and worker say to each other.
//!
//! ```text
//! supervisor ──ToZygote──► zygote     Prepare once, then Fork as often as wanted
//! supervisor ◄─FromZygote─ zygote     Prepared | Refused, then Forked (with two descriptors) and Exited
//! supervisor ──ToWorker──► worker     Run once, then a Reply to each Request
//! supervisor ◄─FromWorker─ worker     Ready | Refused, then Output and Request as it likes, then Done, once
//! ```
//!
//! Everything here is plain data and decisions about it: no I/O, no clock, no threads. A worker is assumed to be
//! hostile, so [`frame`] checks a length before it decodes and [`conversation`] turns each message into an action or
//! a [`Violation`], which ends the worker.

pub mod conversation;
pub mod finding;
pub mod frame;
pub mod id;
pub mod profile;
pub mod search;
pub mod worker;
pub mod zygote;

pub use conversation::{Action, Conversation, ExceededLimit, LOOKUPS_MAX, Violation};
pub use finding::{Finding, Protection, Verdict};
pub use frame::{FrameDecoder, FrameError};
pub use id::{
    CallId, ExecutionId, InvalidName, InvalidText, PromptName, ResourceUri, ResultHandle, ServerName,
    SkillName, ToolName,
};
pub use profile::{ConversationLimits, SandboxProfile};
pub use search::{Detail, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX};
pub use worker::{
    CodeError, Failure, FailureCode, FromWorker, Job, Outcome, Reply, Request, Stream, ToWorker,
};
pub use zygote::{Exit, FromZygote, SECCOMP_FILTERS, STACK_OVERFLOW_STATUS, ToZygote};
