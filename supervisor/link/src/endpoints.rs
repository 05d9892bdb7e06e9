//! The two ends of the edge between front and engine. In one process, a message is a function call. A debug build converts
//! each message to bytes and back.

use std::sync::Weak;

use lockhouse_messages::{Bodies, ExchangeId, ToEngine, ToFront};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::assembler::Parts;
use crate::connection::Receiver;
use crate::encoding::{from_parts, read_from_engine, to_parts};
use crate::outbox::Waiting;

/// The engine's end of the edge. It receives a front's messages.
pub trait EngineEndpoint: Send + Sync {
    /// Begins to send messages to the front.
    fn begin(&self);

    /// Passes a message on, or returns a future that passes it on when there is room for it.
    fn receive(&self, message: ToEngine) -> Option<Waiting>;
}

/// A front's end of the edge. It receives the engine's messages.
pub trait FrontEndpoint: Send + Sync {
    /// Passes a message on, or returns a future that passes it on when there is room for it. Messages that belong to no
    /// exchange never wait.
    fn receive(&self, message: ToFront) -> Option<Waiting>;
}

/// In debug builds, converts a message to bytes and back, so that tests find messages that this loses. If that fails, the
/// process ends: no test passes with such a message. In release builds, returns the message unchanged.
pub(crate) fn round_trip_in_debug<M: Bodies + Serialize + DeserializeOwned>(message: M) -> M {
    if !cfg!(debug_assertions) {
        return message;
    }
    let lost = |error: &dyn std::fmt::Display| -> M {
        tracing::error!("a message between front and engine cannot be sent between processes: {error}");
        std::process::abort()
    };
    match to_parts(message).map(from_parts) {
        Ok(Ok(message)) => message,
        Ok(Err((_, error))) => lost(&error),
        Err(error) => lost(&error),
    }
}

/// Passes the messages of an engine in another process to a front in this one.
pub(crate) struct FromEngine(pub(crate) Weak<dyn FrontEndpoint>);

impl Receiver for FromEngine {
    async fn receive(&mut self, _: ExchangeId, parts: Parts) -> std::io::Result<()> {
        if let (Some(message), Some(front)) = (read_from_engine(parts)?, self.0.upgrade()) {
            // A front in this process takes each message at once.
            drop(front.receive(message));
        }
        Ok(())
    }
}

impl dyn FrontEndpoint {
    /// Sends a message that belongs to no exchange, or that cannot wait, to the front.
    pub fn notify(&self, message: ToFront) {
        // Such a message is in the queue at once.
        drop(self.send(message));
    }

    /// Sends a message to the front. Returns a future if the queue has no room for the message: the future adds it.
    #[must_use]
    pub fn send(&self, message: ToFront) -> Option<Waiting> {
        self.receive(round_trip_in_debug(message))
    }
}
