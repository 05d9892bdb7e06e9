//! Types that all steps of a call share: its error, and the input that goes with it.

use std::collections::BTreeMap;

use lockhouse_protocol::FailureCode;
use serde_json::Value;

/// Why a call has no result. The message is shown to submitted code and the model.
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
    /// The opaque `requestState`, exactly as the server sent it.
    pub(super) state: Option<String>,
}
