//! Questions to the person behind an AI client, and what they answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Question;

/// What the AI client said that it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Show a form to a person.
    pub form: bool,
    /// Have a person open a URL.
    pub url: bool,
    /// Ask a model, as servers of the older eras do that the client has directly.
    pub sampling: bool,
    /// Name its roots, where it calls again with what a server asks for.
    pub roots: bool,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Names it in [`crate::Input::Answer`].
    pub key: String,
    pub question: Question,
    /// How long the person may still take.
    pub patience: Duration,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// With the values of the form, if it was one.
    Accept(Option<Value>),
    Decline,
    Cancel,
    /// None in time.
    Silence,
    /// Something came back that MCP knows as no answer.
    Garbled,
}

/// Questions of upstream servers in one execution, whichever of them asks.
pub const QUESTIONS_MAX: u32 = 20;

/// Why nobody was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unasked {
    #[error("this AI client cannot ask one")]
    Unable,
    #[error("this execution has asked {QUESTIONS_MAX} times already")]
    TooMany,
    #[error("this AI client has too many questions open")]
    Busy,
}

/// What an execution waits for that a person decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonWait {
    /// In words: a call that needs their approval, or a server with a question.
    pub about: String,
    pub since: Duration,
}
