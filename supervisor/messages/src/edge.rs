//! The two ends, in one process: a message is a function call. A debug build writes each message as JSON and reads it again.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ToEngine, ToFront};

/// The engine's end, as a front has it.
pub trait EngineEnd: Send + Sync {
    fn receive(&self, message: ToEngine);
}

/// A front's end, as the engine has it.
pub trait FrontEnd: Send + Sync {
    fn receive(&self, message: ToFront);
}

/// What the other end gets.
pub(crate) fn carried<M: Serialize + DeserializeOwned>(message: M) -> M {
    if !cfg!(debug_assertions) {
        return message;
    }
    let written = serde_json::to_vec(&message);
    let read = written.and_then(|written| serde_json::from_slice(&written));
    match read {
        Ok(read) => read,
        Err(error) => {
            tracing::error!("a message between front and engine does not survive being written: {error}");
            message
        }
    }
}

impl dyn FrontEnd {
    /// Sends a message to the front.
    pub fn send(&self, message: ToFront) {
        self.receive(carried(message));
    }
}
