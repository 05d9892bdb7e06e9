//! Moves the messages between the front and the engine.
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod endpoints;
mod engine_client;
pub mod frames;
mod granted_access;
mod remote_engine;

pub use endpoints::{EngineEndpoint, FrontEndpoint};
pub use engine_client::{EngineClient, Exchange, ExchangeStep};
pub use granted_access::GrantedAccess;
pub use remote_engine::{Connect, EngineSocket, EngineSource, RemoteEngineSettings};
