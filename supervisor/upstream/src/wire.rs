//! Calls of an AI client that has a server directly: what it sent besides arguments, and the server's own words for it.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use rmcp::model::{CompleteRequestParams, ErrorData};
use serde_json::Value;

use super::call::InputResponses;

/// What is asked of a thing.
#[derive(Debug, Default)]
pub enum Verb {
    /// What code asks too: a tool is called, a resource read, a prompt got, a list listed.
    #[default]
    Usual,
    /// What one of its arguments could be.
    Complete(Box<CompleteRequestParams>),
    /// To be told when a resource changes.
    Subscribe,
}

/// One call of an AI client that has a server directly.
#[derive(Debug, Default)]
pub struct Wire {
    pub verb: Verb,
    /// Whether the client makes a call again with what the server asks for: it then gets the question as it is.
    pub calls_again: bool,
    responses: Mutex<InputResponses>,
    failed: Mutex<Option<Failed>>,
}

/// What a server says of a call that failed.
#[derive(Debug)]
pub enum Failed {
    /// A protocol error.
    Error(ErrorData),
    /// The result of a tool that says of itself that it is an error.
    Result(String),
}

impl Wire {
    /// A call that may be one that is made again, with these.
    pub fn new(
        verb: Verb,
        calls_again: bool,
        responses: Option<BTreeMap<String, Value>>,
        state: Option<String>,
    ) -> Self {
        let responses = Mutex::new(InputResponses { responses, state });
        Self { verb, calls_again, responses, failed: Mutex::default() }
    }

    /// What goes with the first request: it goes once.
    pub(super) fn take_responses(&self) -> InputResponses {
        std::mem::take(&mut *self.responses.lock())
    }

    pub(super) fn fail(&self, failed: Failed) {
        *self.failed.lock() = Some(failed);
    }

    /// What the server said of its failure, if it was the server that failed.
    pub fn take_failed(&self) -> Option<Failed> {
        self.failed.lock().take()
    }
}
