//! The review of the tools of an upstream server whose definitions nobody has accepted.

use serde::{Deserialize, Serialize};

use crate::Presence;

/// The tools of an upstream server whose definitions differ from the accepted ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionReview {
    pub server: String,
    /// The digest of all definitions that an acceptance accepts.
    pub digest: String,
    pub changes: Vec<ChangedDefinition>,
    /// The names of accepted tools that the server no longer offers.
    pub removed: Vec<String>,
    /// Why the accepted definitions cannot be read, so that all tools count as changed. `None` if they can be read.
    pub unreadable: Option<String>,
    /// What the person must prove to accept them. Root accepts them without a proof, and with `none` only root does.
    pub presence: Presence,
}

/// A tool whose definition nobody has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedDefinition {
    pub tool: String,
    pub kind: DefinitionChange,
    /// When the earlier definition was accepted, in RFC 3339, and that definition as indented JSON. `None` if there is none.
    pub before: Option<(String, String)>,
    /// The present definition as indented JSON.
    pub after: String,
}

/// How a definition differs from the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionChange {
    Changed,
    New,
    /// The accepted definitions cannot be read.
    NotComparable,
}
