//! The error of a run.

use lockhouse_protocol::{CodeError, FailureCode};
use serde::{Deserialize, Serialize};

/// The error that ended a run, or for which a request was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The name of the error's class in the program's language, or of an error of Lockhouse such as `Busy`.
    pub kind: String,
    pub message: String,
    /// The kind of failure if the error is a `ToolError`; otherwise `None`.
    pub code: Option<ErrorCode>,
    /// The line of the submitted code in which the error occurred, counted from 1; `None` if unknown.
    pub line: Option<u32>,
    /// The column in which the error occurred, counted from 1; `None` if unknown.
    pub column: Option<u32>,
    pub traceback: Option<String>,
    /// What the program should do instead; `None` if there is no hint.
    pub hint: Option<String>,
    /// One sentence about the calls of the program that may already have changed something. `None` if there are none.
    pub changed: Option<String>,
    /// After how many seconds the AI client should repeat a refused request. `None` if unknown.
    pub retry_after_s: Option<u64>,
}

/// The code of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorCode {
    /// A failure of a call.
    Failure(FailureCode),
    /// A code that the program wrote into the error itself.
    OfProgram(String),
}

impl ErrorCode {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Failure(code) => code.as_str(),
            Self::OfProgram(code) => code,
        }
    }
}

impl From<String> for ErrorCode {
    fn from(text: String) -> Self {
        let known = FailureCode::ALL.iter().find(|code| code.as_str() == text);
        known.map_or(Self::OfProgram(text), |code| Self::Failure(*code))
    }
}

impl RunError {
    /// Creates an error of a type, with a message and nothing else.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), ..Self::default() }
    }
}

impl From<CodeError> for RunError {
    fn from(error: CodeError) -> Self {
        let CodeError { kind, code, message, line, column, traceback, hint } = error;
        let code = code.map(ErrorCode::from);
        Self { kind, message, code, line, column, traceback, hint, changed: None, retry_after_s: None }
    }
}
