//! Types that all steps of a call to an upstream server share: the error, and the answers to a server's questions.

use std::collections::BTreeMap;

use lockhouse_protocol::FailureCode;
use serde_json::Value;

/// Why a call of a tool failed. The message is shown to submitted code and the model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(super) struct CallError {
    pub(super) code: FailureCode,
    pub(super) message: String,
}

impl CallError {
    pub(super) fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The error of a tool that failed, or whose server broke the MCP protocol.
    pub(super) fn tool_failed(message: impl Into<String>) -> Self {
        Self::new(FailureCode::ToolFailed, message)
    }
}

/// The answers and the state to send when a call is repeated because its server required input.
#[derive(Clone, Debug, Default)]
pub(super) struct InputResponses {
    pub(super) responses: Option<BTreeMap<String, Value>>,
    /// The opaque `requestState` that the repeated call returns to the server, exactly as the server sent it; `None`
    /// if it sent none.
    pub(super) state: Option<String>,
}
