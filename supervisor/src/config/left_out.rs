//! Why a server of a file is not used.

use lockhouse_protocol::ServerName;

use super::env_file::EnvFileError;
use super::keys::Range;
use super::references::Unresolved;

/// Why a server is not used. No value of the file is in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum LeftOut {
    #[error("it is disabled")]
    Disabled,
    #[error("it is Lockhouse itself")]
    Itself,
    #[error("{key}: expected {expected}")]
    Unexpected { key: String, expected: &'static str },
    #[error("{key}: expected {range}")]
    OutOfRange { key: String, range: Range },
    #[error("it has neither a command nor a URL")]
    NoReach,
    #[error("it has both a command and a URL: keep one of them")]
    TwoReaches,
    #[error("it is reached over HTTP+SSE, which MCP has replaced: {0}")]
    OldTransport(&'static str),
    #[error("it comes from an extension of that AI client and has no command here")]
    Extension,
    #[error("url: it is not an absolute http or https URL")]
    Url,
    #[error(
        "headers: {0:?} cannot be the name of a header, or its value has a character that no header may have"
    )]
    Header(String),
    #[error("{key}: {reason}")]
    Unresolved { key: String, reason: Unresolved },
    #[error("envFile: {0}")]
    EnvFile(#[source] EnvFileError),
    #[error("its name has none of A-Z a-z 0-9: rename it")]
    Name,
    #[error("the name skills is Lockhouse's own, under which code saves skills: give it another one")]
    ReservedName,
    #[error("{origin} has one of that name, and counts before this file")]
    NameTaken { origin: String },
    #[error("code would call it the same as server {name} of {origin}: rename one of them")]
    SameInCode { name: ServerName, origin: String },
    #[error("there are {max} others, and no more are held")]
    TooMany { max: usize },
    /// What Lockhouse does not do, and what to write instead.
    #[error("{0}")]
    Unsupported(&'static str),
    /// In the words of a fault of our own configuration.
    #[error("{0}")]
    Invalid(String),
}
