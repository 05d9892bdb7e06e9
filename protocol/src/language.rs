//! The programming languages of submitted code.

use serde::{Deserialize, Serialize};

/// A programming language for submitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python, executed by the interpreter that is installed on the machine: version 3.10 or later.
    Python,
    /// TypeScript, which includes JavaScript.
    Typescript,
}

impl Language {
    /// The name of the language in requests, results and audit records: `python` or `typescript`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Typescript => "typescript",
        }
    }
}
