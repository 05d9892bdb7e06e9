//! Questions to the user of an AI client, and the answers to them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Question;

/// Which kinds of requests to its user or its model an AI client supports (MCP client capabilities).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSupport {
    /// Whether the client supports elicitation with a form.
    pub form: bool,
    /// Whether the client supports elicitation with a URL that the user opens.
    pub url: bool,
    /// Whether the client supports sampling, which is a request to its model.
    pub sampling: bool,
    /// Whether the client can list its roots in answer to an input request of a server.
    pub roots: bool,
}

/// A pending question to the user of an AI client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The key of the question, with which [`crate::Input::Answer`] refers to it.
    pub key: String,
    pub question: Question,
    /// The time that is left until the question expires.
    pub time_left: Duration,
}

/// The answer to a question that was put to the user, or for sampling to the model, of an AI client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The user or the model answered the question. Contains the values that the user filled into a form, or the
    /// message of the model. `None` if the AI client sent no content.
    Accept(Option<Value>),
    Decline,
    Cancel,
    /// The user did not answer before the question expired.
    TimedOut,
    /// The AI client sent an answer that is not valid in MCP.
    Malformed,
}

/// Maximum number of questions that all upstream servers together may ask the user during one execution.
pub const QUESTIONS_MAX: u32 = 20;

/// Why a question of an upstream server, or about an approval, was not shown to the user of the AI client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskError {
    Unsupported,
    TooMany,
    Busy,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("this AI client cannot ask its user a question"),
            Self::TooMany => write!(f, "this execution has already asked {QUESTIONS_MAX} questions"),
            Self::Busy => f.write_str("this AI client has too many open questions"),
        }
    }
}

impl std::error::Error for AskError {}

/// A question to a user or approver that an execution waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserWait {
    /// What the question is about: the approval of a call, or what an upstream server asks.
    pub reason: String,
    pub since: Duration,
}
