//! Types that all steps of a call to an upstream server share: the error of the call, and the user's answers to
//! questions of the server.

use std::collections::BTreeMap;

use lockhouse_protocol::FailureCode;
use serde_json::Value;

/// Why a call to an upstream server failed. Submitted code and the model get the message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(super) struct CallError {
    pub(super) code: FailureCode,
    pub(super) message: String,
    /// The result that reported the failure, in the form that the worker gets, if it has more than the message.
    pub(super) result: Option<Vec<u8>>,
}

impl CallError {
    pub(super) fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), result: None }
    }

    /// Creates the error of a tool that failed, or whose server broke the MCP protocol.
    pub(super) fn tool_failed(message: impl Into<String>) -> Self {
        Self::new(FailureCode::ToolFailed, message)
    }
}

/// The input that is sent when a call is repeated because its server required input: the user's answers and the
/// server's opaque state.
#[derive(Clone, Debug, Default)]
pub(super) struct InputResponses {
    pub(super) responses: Option<BTreeMap<String, Value>>,
    /// The opaque `requestState` of the server. The repeated call returns it exactly as the server sent it. `None` if
    /// the server sent none.
    pub(super) state: Option<String>,
}
