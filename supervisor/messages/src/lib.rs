//! The edge between the front and the engine, as data: every message that the two exchange.
//!
//! Neither side uses a type of the other. The crate `lockhouse-link` moves the messages. If both sides are in one
//! process, a message is a function call.
//!
//! # Parts
//!
//! - [`ToEngine`] and [`ToFront`] are the messages. A [`Request`] opens an exchange, which has any number of [`Event`]s
//!   and [`Input`]s and ends with one [`Response`].
//! - [`Greeting`] is the first message of a connection between processes. It has one form in all versions.
//! - [`Credential`], [`Authentication`], [`Access`], [`GrantId`] and [`Roles`]: a front passes a credential on, and the
//!   engine answers with a grant.
//! - [`RequestHead`] is what every request carries beside itself: its id, its client, its time and its span.
//! - [`RunCode`], [`RunView`] and [`RunAnswer`] are about runs. Every form of an answer, for AI clients and for
//!   `lockhouse run --json`, is made from [`RunAnswer`].
//! - [`DirectCall`] is a call that an AI client makes without code. [`Question`] and [`Answer`] are for its user.
//! - [`OperatorRequest`] and [`ApprovalQuestion`] are for operators' commands and approvers.
//! - [`LifecycleState`] tells fronts whether the engine serves, drains or closes. While it drains, a front sends no new
//!   request and reports its requests in flight. [`FrontCounters`] and [`ToolCallSpan`] are what a front counts, and
//!   the spans that the engine opens for it: the engine alone exports metrics and traces.
//! - [`HostTag`] is the part of an id that says which host of a cluster made it.
//! - [`Bodies`] are the large values of a message. A link sends them beside it as bytes.
//!
//! # Invariants
//!
//! - Nothing here names a runtime, a socket or an MCP library. The crate depends on the protocol, serde, serde_json and
//!   uuid.
//! - No message contains a user id or a secret of the configuration.
//! - No request is believed about who sends it. It names a grant, and the engine takes the identity from its own table.
//! - No member of a [`Greeting`] is required that an earlier version did not send.
//! - No message of an exchange follows its [`Response`], and no exchange has two.
//!
//! # Decisions
//!
//! - The edge is data, so that front and engine may be two processes with different rights, and so that a debug build
//!   can convert each message to bytes and back: every black-box test verifies that the messages are complete.
//! - Requests with effects have an id that the engine remembers. A request that arrives again is recognised and not
//!   carried out again.
//! - The engine sends at most [`EVENTS_AHEAD_MAX`] events of an exchange before the front has passed earlier ones on. A
//!   slow AI client slows down its own run and nothing else.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod access;
mod approval;
mod base64_bytes;
mod bodies;
mod caller;
mod client_certificate;
mod credential;
mod definition_review;
mod direct;
mod failure;
mod front_counters;
mod greeting;
mod host_tag;
mod lifecycle_state;
mod message;
mod operator;
mod owner;
mod presence;
mod question;
mod request_claims;
mod request_head;
mod role;
mod run;
mod run_answer;
mod secret;
mod shared;
mod trace_context;
mod user_answers;
mod user_login;

pub use access::{Access, AccessRefusal, Authentication, GrantId, ResourceMetadata};
pub use approval::{
    AccessToken, Approval, ApprovalEvent, ApprovalInput, ApprovalQuestion, ApproverAnswer, ApproverDecision,
    CallSummary, ChallengeRequest, RequiredApprovers, WatcherRole,
};
pub use base64_bytes::Base64Bytes;
pub use bodies::{Bodies, InvalidBody, LargeValue};
pub use caller::Caller;
pub use client_certificate::{ClientCertificate, TokenCertificate};
pub use credential::{ConnectionId, Credential};
pub use definition_review::{ChangedDefinition, DefinitionChange, DefinitionReview};
pub use direct::{
    BUILT_IN_TOOL_NAMES, CallDigest, DirectAction, DirectCall, DirectReply, DirectTarget,
    ForwardedNotification, JsonRpcError, ListChanges, ListKind, ResumedCall,
};
pub use failure::RequestFailure;
pub use front_counters::{FrontCounters, HttpRefusal};
pub use greeting::{Greeting, GreetingReply, VERSIONS, VersionRange};
pub use host_tag::{HostTag, InvalidHostTag};
pub use lifecycle_state::LifecycleState;
pub use message::{
    BuiltinTool, BuiltinTools, EVENTS_AHEAD_MAX, Event, ExchangeId, FrontSettings, Input, McpSessionRequest,
    Repetition, Request, Response, RunReference, SearchRequest, SessionMessage, StoredFile, ToEngine,
    ToFront,
};
pub use operator::{
    DigestsInForce, EndedRuns, EndedSessions, FileLocation, HostActivity, HostListing, ListedHost,
    LoginProgress, Logout, OperatorRequest, OperatorResponse, PolicyProposal, ProposedChange, ReloadReport,
    ResultListing, RunListing, SessionListing,
};
pub use owner::Owner;
pub use presence::{
    EnrolmentCode, KeyAssertion, KeyChallenge, KeyListing, KeyRegistration, PasswordMethod, Presence,
    PresenceProof,
};
pub use question::{Question, QuestionKind};
pub use request_claims::{Claim, RequestClaims};
pub use request_head::{Incarnation, RequestHead, RequestId};
pub use role::{Role, Roles};
pub use run::{FinishedRun, Media, Progress, RESULT_URI_PREFIX, ResultFile, RunCode, RunState, RunView};
pub use run_answer::{
    AnswerMembers, CallReport, CalledItem, CutPart, CutValue, ErrorCode, FileReport, RunAnswer, RunError,
    RunStats, RunStatus, RunUsage, Sandbox, SessionReport, ShownText, ShownValue, StoredFileReport,
};
pub use secret::{InvalidSecret, SecretName, SecretValue};
pub use trace_context::{SpanId, SpanOutcome, ToolCallSpan, TraceContext};
pub use user_answers::{Answer, AskError, InputSupport, OpenQuestion, QUESTIONS_MAX, UserWait};
pub use user_login::UserLoginRequest;
