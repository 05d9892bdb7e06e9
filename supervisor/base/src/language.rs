//! The languages that programs are written in.

use serde::{Deserialize, Serialize};

/// A language that code may be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3.10 or later, as the machine has it.
    Python,
    /// TypeScript, and with it JavaScript.
    Typescript,
}

impl Language {
    /// The name in requests, answers and records: `python` or `typescript`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Typescript => "typescript",
        }
    }
}
