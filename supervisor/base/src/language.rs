//! The programming languages that runs can use.

use serde::{Deserialize, Serialize};

/// A programming language for submitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3.10 or later, the interpreter that is installed on the machine.
    Python,
    /// TypeScript, which includes JavaScript.
    Typescript,
}

impl Language {
    /// The name in requests, results and audit records: `python` or `typescript`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Typescript => "typescript",
        }
    }
}
