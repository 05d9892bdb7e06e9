//! Moves the messages between a front and the engine: by function calls in one process, or over a local socket between
//! two.
//!
//! # Parts
//!
//! - [`EngineClient`] is the front's end, [`EngineEndpoint`] and [`FrontEndpoint`] are the two ends as traits.
//!   [`OperatorClient`] is the end of an operator's command.
//! - [`greetings`] sends and receives the first message in each direction, in which both ends agree on a version.
//! - `frame.rs`, `assembler.rs` and `encoding.rs`: a message is JSON, with its large values as bytes beside it.
//!   `encoding.rs` also has the table of what happens to messages of another version.
//! - `outbox.rs` is the bounded queue of a connection, `connection.rs` reads and writes it and finds out whether the
//!   peer lives.
//! - `remote_engine.rs` is a connection to a shared engine, which is opened again when it is lost;
//!   `remote_engine/open_requests.rs` decides without I/O which requests are repeated. `single_engine.rs` is the
//!   connection to the engine that started this front, or to that of another host.
//! - [`GrantedAccess`], [`EngineLifecycle`], [`RequestInFlight`] and [`CallSpan`] are what a front knows of, and
//!   reports to, its engine.
//! - [`OpenConnection`] and [`PassedConnections`]: connections of Unix domain sockets, which the engine's process
//!   accepts and passes to a front in another process. [`SetupSender`] and
//!   [`SetupReceiver`]: the settings and certificates of a front in another process.
//!
//! # Invariants
//!
//! - Nothing here names MCP, a run or a policy. The crate knows the messages and nothing else of Lockhouse.
//! - No other crate opens the sockets between front and engine.
//! - Nothing is unbounded, and nothing that fits is dropped. A full queue makes the sender wait.
//! - No response is lost. If a queue has no room for it, `Unavailable` takes its place.
//! - No request that may have had effects is repeated. The engine writes `Begun` before it does anything for such a
//!   request, so a request without `Begun` had no effect.
//! - No message of an exchange delays another exchange by more than one frame: exchanges take turns.
//!
//! # Decisions
//!
//! - In one process there is no task and no queue between the two ends, so that no call pays for the edge.
//! - A peer that reads nothing for a minute, or sends no whole frame in that time, loses the connection; another host after 15 s. End of file
//!   alone would leave a stopped process connected for ever.
//! - Values of JSON count with the memory that they need, and before they are parsed.
//!
//! # Limits
//!
//! A frame has at most [`FRAME_BYTES_MAX`] bytes. A queue has 32 MiB; further messages wait, up to 256 MiB. The open
//! requests of a connection may take 256 MiB, its waiting inputs 64 MiB; one request or input may be larger.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

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
mod packet_channel;
mod passed_connections;
mod passed_packets;
mod passed_sockets;
mod remote_engine;
mod setup_channel;
mod single_engine;

pub use assembler::{Assembler, MessageLimits, PART_OVERHEAD_BYTES, Parts};
pub use connection::{FROM_ENGINE, FROM_FRONT, FROM_HOST, FROM_OPERATOR, Receiver, serve};
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
pub use packet_channel::PacketChannel;
pub use passed_connections::{ConnectionPasser, PassedConnection, PassedConnections};
pub use passed_sockets::{receive_socket, send_socket};
pub use remote_engine::{Connect, EngineSocket, EngineSource, RemoteEngineError, RemoteEngineSettings};
pub use setup_channel::{SetupReceiver, SetupSender};
