//! The messages between the front and the engine.
//!
//! The front speaks MCP with AI clients; the engine runs programs and calls upstream servers. Neither uses a type of
//! the other: they exchange the messages of this crate, which are data and can be serialized. The crate `lockhouse-link`
//! moves them. If both are in one process, a message is a function call.
//!
//! Each [`Request`] opens an exchange of messages, which has any number of events and inputs and ends with one
//! [`Response`]. If the engine is in another process, a connection begins with a [`Greeting`].
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod access;
mod approval;
mod base64_bytes;
mod bodies;
mod caller;
mod credential;
mod direct;
mod failure;
mod front_counters;
mod greeting;
mod lifecycle_state;
mod message;
mod operator;
mod owner;
mod question;
mod request_claims;
mod request_head;
mod role;
mod run;
mod run_answer;
mod shared;
mod trace_context;
mod user_answers;

pub use access::{Access, AccessRefusal, Authentication, GrantId, ResourceMetadata};
pub use approval::{
    Approval, ApprovalEvent, ApprovalInput, ApprovalQuestion, ApproverAnswer, ApproverDecision, CallSummary,
    WatcherRole,
};
pub use bodies::{Bodies, InvalidBody, LargeValue};
pub use caller::Caller;
pub use credential::{ConnectionId, Credential};
pub use direct::{
    BUILT_IN_TOOL_NAMES, DirectAction, DirectCall, DirectReply, DirectTarget, ForwardedNotification,
    JsonRpcError, ListChanges, ListKind,
};
pub use failure::RequestFailure;
pub use front_counters::{FrontCounters, HttpRefusal};
pub use greeting::{Greeting, GreetingReply, VERSIONS, VersionRange};
pub use lifecycle_state::LifecycleState;
pub use message::{
    BuiltinTool, BuiltinTools, EVENTS_AHEAD_MAX, Event, ExchangeId, FrontSettings, Input, Repetition,
    Request, Response, RunReference, SearchRequest, StoredFile, ToEngine, ToFront,
};
pub use operator::{
    EndedRuns, EndedSessions, FileLocation, OperatorRequest, OperatorResponse, ReloadReport, ResultListing,
    RunListing, SessionListing,
};
pub use owner::Owner;
pub use question::{Question, QuestionKind};
pub use request_claims::{Claim, RequestClaims};
pub use request_head::{Incarnation, RequestHead, RequestId};
pub use role::{Role, Roles};
pub use run::{FinishedRun, Media, Progress, RESULT_URI_PREFIX, ResultFile, RunCode, RunState, RunView};
pub use run_answer::{
    AnswerMembers, CallReport, CalledItem, CutPart, CutValue, ErrorCode, FileReport, RunAnswer, RunError,
    RunStats, RunStatus, RunUsage, Sandbox, SessionReport, ShownText, ShownValue, StoredFileReport,
};
pub use trace_context::{SpanId, SpanOutcome, ToolCallSpan, TraceContext};
pub use user_answers::{Answer, AskError, InputSupport, OpenQuestion, QUESTIONS_MAX, UserWait};
