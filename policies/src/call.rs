//! The calls that policies decide.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call_target::CallTarget;
use crate::printable::{printable, truncate_chars};

/// The number of characters of an AI client's name that are kept.
const CLIENT_CHARS_MAX: usize = 64;

/// The name of an AI client, as the client gives it, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct ClientName(String);

impl From<String> for ClientName {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}

impl ClientName {
    /// Truncates the name to 64 characters and replaces hidden characters.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(printable(&truncate_chars(name, CLIENT_CHARS_MAX)))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Maps each path that occurs in arguments or rules to the path that it leads to with all symbolic links resolved.
/// The target of a path that is missing here is unknown.
pub type ResolvedPaths = BTreeMap<String, String>;

/// A call to be decided. The arguments that are decided are those that are sent: they move from here into the
/// [`PermittedCall`](crate::PermittedCall).
#[derive(Clone, Debug)]
pub struct Call {
    /// The upstream server.
    pub server: ServerName,
    /// The tool, resource, prompt or list that is requested.
    pub item: CallTarget,
    /// The arguments by name; empty for targets that take none.
    pub arguments: Map<String, Value>,
    /// The name of the AI client, if there is one.
    pub client: Option<ClientName>,
    /// The SHA-256 of the tool's definition in hexadecimal, if it is known.
    pub definition: Option<String>,
    /// The resolved form of each of [`Policy::paths_to_resolve`](crate::Policy::paths_to_resolve).
    pub resolved_paths: ResolvedPaths,
}

impl Call {
    /// Makes a call without arguments.
    #[must_use]
    pub fn new(server: &ServerName, item: impl Into<CallTarget>) -> Self {
        Self {
            server: server.clone(),
            item: item.into(),
            arguments: Map::new(),
            client: None,
            definition: None,
            resolved_paths: ResolvedPaths::new(),
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: Map<String, Value>) -> Self {
        Self { arguments, ..self }
    }

    /// Sets the SHA-256 of the tool's definition, in hexadecimal.
    #[must_use]
    pub fn with_definition_digest(self, definition: impl Into<String>) -> Self {
        Self { definition: Some(definition.into()), ..self }
    }

    /// Sets the resolved targets of the call's paths.
    #[must_use]
    pub fn with_resolved_paths(self, resolved_paths: ResolvedPaths) -> Self {
        Self { resolved_paths, ..self }
    }

    /// Sets the AI client that the call is made for.
    #[must_use]
    pub fn with_client(self, client: Option<ClientName>) -> Self {
        Self { client, ..self }
    }
}
