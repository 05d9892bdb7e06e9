//! Reasons for not using a server that a configuration file lists.

use lockhouse_protocol::ServerName;

use super::env_file::EnvFileError;
use super::keys::Range;
use super::placeholders::PlaceholderError;

/// Why a server that a configuration file lists is not used. The messages contain no value of the file, which could be
/// a secret.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SkipReason {
    #[error("it is disabled")]
    Disabled,
    #[error("it is Lockhouse itself")]
    LockhouseItself,
    #[error("{key}: expected {expected}")]
    Unexpected { key: String, expected: &'static str },
    #[error("{key}: expected {range}")]
    OutOfRange { key: String, range: Range },
    #[error("it has neither a command nor a URL")]
    NoEndpoint,
    #[error("it has both a command and a URL: keep one of them")]
    TwoEndpoints,
    /// An AI client's file lists a server over HTTP+SSE, which a person has to confirm. Contains other advice.
    #[error(
        "it uses HTTP+SSE, which MCP has deprecated: {0}, or let `lockhouse import` take it over as it is"
    )]
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
    Placeholder { key: String, reason: PlaceholderError },
    #[error("envFile: {0}")]
    EnvFile(#[source] EnvFileError),
    #[error("its name contains none of A-Z a-z 0-9: rename it")]
    InvalidName,
    #[error("the name skills is reserved for saved skills: choose another name")]
    ReservedName,
    #[error("the server of this name in {origin} takes precedence")]
    NameTaken { origin: String },
    #[error("code would use the same name for it as for server {name} of {origin}: rename one of them")]
    IdentifierConflict { name: ServerName, origin: String },
    #[error("the limit of {max} servers is reached")]
    TooMany { max: usize },
    /// The entry uses a feature that Lockhouse does not support. The text names the feature and an alternative.
    #[error("{0}")]
    Unsupported(&'static str),
    /// An entry in Lockhouse's own format is invalid. The text describes the fault.
    #[error("{0}")]
    Invalid(String),
}
