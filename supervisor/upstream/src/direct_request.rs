//! Requests of AI clients that use a server directly: what the client sent besides arguments, and the server's own
//! error.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use rmcp::model::{CompleteRequestParams, ErrorData};
use serde_json::Value;

use super::call_types::InputResponses;

/// The kind of a request of an AI client that uses a server directly.
#[derive(Debug, Default)]
pub enum DirectRequestKind {
    /// The request that the item implies: `tools/call`, `resources/read`, `prompts/get`, or a list.
    #[default]
    Usual,
    /// Completion of an argument (`completion/complete`).
    Complete(Box<CompleteRequestParams>),
    /// A subscription to changes of a resource.
    Subscribe,
}

/// One request of an AI client that uses a server directly.
#[derive(Debug, Default)]
pub struct DirectRequest {
    pub verb: DirectRequestKind,
    /// Whether the client answers `input_required` results itself, by repeating the call; they are forwarded to it
    /// then.
    pub retries_with_input: bool,
    responses: Mutex<InputResponses>,
    failure: Mutex<Option<DirectFailure>>,
}

/// The server's own error for a request that failed.
#[derive(Debug)]
pub enum DirectFailure {
    /// A JSON-RPC error.
    Error(ErrorData),
    /// A tool result with `isError`, as its JSON text.
    Result(String),
}

impl DirectRequest {
    /// Creates a direct request. `responses` and `state` are the user's answers and the server's state, of a client
    /// that repeats its call.
    pub fn new(
        verb: DirectRequestKind,
        retries_with_input: bool,
        responses: Option<BTreeMap<String, Value>>,
        state: Option<String>,
    ) -> Self {
        let responses = Mutex::new(InputResponses { responses, state });
        Self { verb, retries_with_input, responses, failure: Mutex::default() }
    }

    /// Takes the responses to send with the first request; empty after that.
    pub(super) fn take_responses(&self) -> InputResponses {
        std::mem::take(&mut *self.responses.lock())
    }

    pub(super) fn fail(&self, failure: DirectFailure) {
        *self.failure.lock() = Some(failure);
    }

    /// Takes the server's error, if the server itself failed the request.
    pub fn take_failure(&self) -> Option<DirectFailure> {
        self.failure.lock().take()
    }
}
