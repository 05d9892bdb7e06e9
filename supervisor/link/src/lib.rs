//! Moves the messages between a front and the engine: by function calls in one process, or over a connection between two.
//!
//! A connection begins with a greeting ([`greetings`]), in which both ends agree on a version. Then each message is sent
//! in frames of at most 1 MiB (`frame.rs`, `assembler.rs`): the message as JSON, and its large values as bytes
//! (`encoding.rs`, which also says what happens to messages of another version). Nothing is unbounded, and nothing that
//! fits is dropped: a message waits for room in the queue of its connection (`outbox.rs`), and events of a request wait
//! until the front has passed on earlier ones ([`ToEngine::Credit`](lockhouse_messages::ToEngine::Credit)). A peer that
//! is silent for a minute counts as lost (`connection.rs`).
//!
//! [`EngineClient`] is the front's end; `remote_engine.rs` is its connection to an engine in another process, which it
//! opens again when it is lost. [`PassedConnections`] has the connections of AI clients that an engine in another process has
//! accepted. [`OperatorClient`] is the end of an operator's command.
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod assembler;
mod connection;
mod counted;
mod encoding;
mod endpoints;
mod engine_client;
mod engine_lifecycle;
mod engine_reports;
mod frame;
mod granted_access;
pub mod greetings;
mod open_connection;
mod operator_client;
mod outbox;
mod parent_engine;
mod passed_connections;
mod remote_engine;

pub use assembler::{Assembler, MessageLimits, PART_OVERHEAD_BYTES, Parts};
pub use connection::{FROM_ENGINE, FROM_FRONT, FROM_OPERATOR, Receiver, serve};
pub use counted::Counted;
pub use encoding::{FromFront, memory_of, read_from_engine, read_from_front, to_parts};
pub use endpoints::{EngineEndpoint, FrontEndpoint};
pub use engine_client::{EngineClient, Exchange, ExchangeStep};
pub use engine_lifecycle::{EngineLifecycle, RequestInFlight};
pub use engine_reports::CallSpan;
pub use frame::{FRAME_BYTES_MAX, FrameHeader, FrameKind, HEADER_BYTES, Violation};
pub use granted_access::GrantedAccess;
pub use open_connection::OpenConnection;
pub use operator_client::{OperatorClient, OperatorError};
pub use outbox::{OutboxSender, OutboxWriter, Queued, Waiting, outbox};
pub use passed_connections::{ConnectionPasser, PassedConnection, PassedConnections};
pub use remote_engine::{Connect, EngineSocket, EngineSource, RemoteEngineSettings};
