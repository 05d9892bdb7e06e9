//! Moves the messages between the front and the engine.
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod endpoints;
mod engine_client;
mod engine_lifecycle;
mod engine_reports;
pub mod frames;
mod remote_engine;

pub use endpoints::{EngineEndpoint, FrontEndpoint};
pub use engine_client::{EngineClient, Exchange, ExchangeStep};
pub use engine_lifecycle::{EngineLifecycle, RequestInFlight};
pub use engine_reports::CallSpan;
pub use remote_engine::{Connect, EngineSocket, EngineSource, RemoteEngineSettings};
