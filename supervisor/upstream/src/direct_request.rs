//! Requests of AI clients that use an upstream server directly, without submitted code: the kind of the request, the
//! user's answers that the client sent with it, and the server's own error.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use rmcp::model::{CompleteRequestParams, ErrorData};
use serde_json::{Map, Value, json};

use super::call_types::InputResponses;

/// The kind of a request of an AI client that uses an upstream server directly, without submitted code.
#[derive(Debug, Default)]
pub enum DirectRequestKind {
    /// The usual request for the target of the call: `tools/call`, `resources/read`, `prompts/get`, or a list request.
    #[default]
    Usual,
    /// Completion of an argument of a prompt or a resource template (`completion/complete`).
    Complete(Box<CompleteRequestParams>),
    /// A subscription to changes of a resource (`resources/subscribe`).
    Subscribe,
}

/// One request of an AI client that uses an upstream server directly, without submitted code.
#[derive(Debug, Default)]
pub struct DirectRequest {
    pub verb: DirectRequestKind,
    /// Whether the AI client itself handles `input_required` results: it asks its user and repeats the call. If so,
    /// such results are forwarded to the client.
    pub retries_with_input: bool,
    responses: Mutex<InputResponses>,
    failure: Mutex<Option<DirectFailure>>,
}

/// The upstream server's own error for a failed request of an AI client.
#[derive(Debug)]
pub enum DirectFailure {
    /// The server answered the request with this JSON-RPC error.
    Error(ErrorData),
    /// The server answered with a tool result that has `isError`. Contains the JSON text of the result.
    Result(String),
}

impl DirectRequest {
    /// Creates a direct request. If the AI client repeats a call with the input that the server required, `responses`
    /// contains the user's answers and `state` the server's `requestState`; otherwise they are `None`.
    pub fn new(
        verb: DirectRequestKind,
        retries_with_input: bool,
        responses: Option<BTreeMap<String, Value>>,
        state: Option<String>,
    ) -> Self {
        let responses = Mutex::new(InputResponses { responses, state });
        Self { verb, retries_with_input, responses, failure: Mutex::default() }
    }

    /// Returns what is sent to the server beside the arguments of the call: the user's answers, the server's state, and a
    /// request that is not the usual one for the target. `None` if nothing is.
    pub fn sent_beside_arguments(&self) -> Option<Value> {
        let mut sent = Map::new();
        match &self.verb {
            DirectRequestKind::Usual => {}
            DirectRequestKind::Subscribe => drop(sent.insert("method".into(), "resources/subscribe".into())),
            DirectRequestKind::Complete(request) => {
                sent.insert("method".into(), "completion/complete".into());
                sent.insert("params".into(), serde_json::to_value(request).unwrap_or_default());
            }
        }
        let InputResponses { responses, state } = &*self.responses.lock();
        sent.extend(responses.as_ref().map(|responses| ("inputResponses".to_owned(), json!(responses))));
        sent.extend(state.as_ref().map(|state| ("requestState".to_owned(), state.as_str().into())));
        (!sent.is_empty()).then_some(Value::Object(sent))
    }

    /// Removes and returns the user's answers and the server's state, which are sent with the first request of the
    /// call. A second call of this function returns no answers and no state.
    pub(super) fn take_responses(&self) -> InputResponses {
        std::mem::take(&mut *self.responses.lock())
    }

    pub(super) fn fail(&self, failure: DirectFailure) {
        *self.failure.lock() = Some(failure);
    }

    /// Removes and returns the server's own error; `None` if the server reported no error.
    pub fn take_failure(&self) -> Option<DirectFailure> {
        self.failure.lock().take()
    }
}
