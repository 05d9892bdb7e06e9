//! The plain parts of a call that every step of it knows: what goes with it, and why it has no result.

use std::collections::BTreeMap;

use lockhouse_protocol::FailureCode;
use serde_json::Value;

/// Why a call has no result. The message is for code and the model.
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

    /// The tool failed, or its server did not keep to MCP.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureCode::ToolFailed, message)
    }
}

/// What goes with a call that is made again because its server asked for input.
#[derive(Clone, Debug, Default)]
pub(super) struct InputResponses {
    pub(super) responses: Option<BTreeMap<String, Value>>,
    /// Exactly as the server gave it.
    pub(super) state: Option<String>,
}
