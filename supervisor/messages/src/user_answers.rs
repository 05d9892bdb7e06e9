//! Questions to the user of an AI client, and their answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Question;

/// The kinds of input requests that the AI client supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSupport {
    /// Elicitation with a form.
    pub form: bool,
    /// Elicitation with a URL that the user opens.
    pub url: bool,
    /// Sampling: a request to the client's model.
    pub sampling: bool,
    /// Listing the client's roots, in answer to an input request.
    pub roots: bool,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The key that [`crate::Input::Answer`] names.
    pub key: String,
    pub question: Question,
    /// The time until the question expires.
    pub time_left: Duration,
}

/// A user's answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The user accepted; with the values of the form if it was one.
    Accept(Option<Value>),
    Decline,
    Cancel,
    /// The question expired without an answer.
    TimedOut,
    /// The client's answer is not valid in MCP.
    Malformed,
}

/// The number of questions that all upstream servers together may ask during one execution.
pub const QUESTIONS_MAX: u32 = 20;

/// Why a question was not shown to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AskError {
    #[error("this AI client cannot ask its user a question")]
    Unsupported,
    #[error("this execution has already asked {QUESTIONS_MAX} questions")]
    TooMany,
    #[error("this AI client has too many open questions")]
    Busy,
}

/// A decision of a user that an execution waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserWait {
    /// What the user decides: the approval of a call, or a server's question.
    pub reason: String,
    pub since: Duration,
}
