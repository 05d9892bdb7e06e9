//! The two ends of the connection between front (which speaks MCP with AI clients) and engine (which runs
//! programs), for the case that both are in one process. A message is then a function call. A debug build
//! serializes each message and parses it again.

use serde::Serialize;
use serde::de::DeserializeOwned;

use lockhouse_messages::{ToEngine, ToFront};

/// The engine's end of the connection with a front (which speaks MCP with AI clients). It receives the
/// front's messages.
pub trait EngineEndpoint: Send + Sync {
    fn receive(&self, message: ToEngine);
}

/// A front's end of the connection with the engine (which runs programs). It receives the engine's messages.
pub trait FrontEndpoint: Send + Sync {
    fn receive(&self, message: ToFront);
}

/// In debug builds, serializes a message to JSON and parses it again, so that tests find messages that
/// serialization loses. If that fails, the process ends: no test passes with such a message. In release builds, returns the
/// message unchanged.
pub(crate) fn round_trip_in_debug<M: Serialize + DeserializeOwned>(message: M) -> M {
    if !cfg!(debug_assertions) {
        return message;
    }
    let written = serde_json::to_vec(&message);
    written.and_then(|written| serde_json::from_slice(&written)).unwrap_or_else(|error| {
        tracing::error!("a message between front and engine cannot be serialized and parsed again: {error}");
        std::process::abort()
    })
}

impl dyn FrontEndpoint {
    /// Sends a message to the front.
    pub fn send(&self, message: ToFront) {
        self.receive(round_trip_in_debug(message));
    }
}
