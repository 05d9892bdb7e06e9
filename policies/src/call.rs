//! One call, as a policy is asked about it.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::item::Item;
use crate::printable::{clipped, printable};

/// Characters of an AI client's name that are kept.
const CLIENT_CHARS_MAX: usize = 64;

/// What an AI client calls itself. It is its own word, made fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct ClientName(String);

impl From<String> for ClientName {
    fn from(name: String) -> Self {
        Self::of(&name)
    }
}

impl ClientName {
    /// Any name: cut, and with hidden characters replaced.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(printable(&clipped(name, CLIENT_CHARS_MAX)))
    }

    /// As it is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where paths in arguments lead to: each as it stands in the arguments, and without links. A path that is not among them
/// leads nobody knows where.
pub type Links = BTreeMap<String, String>;

/// One call that somebody wants to make. What is decided about is what is sent: the arguments are moved from here into
/// the [`PermittedCall`](crate::PermittedCall).
#[derive(Clone, Debug)]
pub struct Call {
    /// The upstream server.
    pub server: ServerName,
    /// What is asked of it.
    pub item: Item,
    /// By name. Empty for what takes none.
    pub arguments: Map<String, Value>,
    /// The AI client, where there is one.
    pub client: Option<ClientName>,
    /// The SHA-256 of the tool's definition, in hexadecimal, where it is known.
    pub definition: Option<String>,
    /// Of [`Policy::paths`](crate::Policy::paths).
    pub links: Links,
}

impl Call {
    /// One without arguments.
    #[must_use]
    pub fn new(server: &ServerName, item: impl Into<Item>) -> Self {
        Self {
            server: server.clone(),
            item: item.into(),
            arguments: Map::new(),
            client: None,
            definition: None,
            links: Links::new(),
        }
    }

    /// With these arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: Map<String, Value>) -> Self {
        Self { arguments, ..self }
    }

    /// With the SHA-256 of the tool's definition, in hexadecimal.
    #[must_use]
    pub fn defined(self, definition: impl Into<String>) -> Self {
        Self { definition: Some(definition.into()), ..self }
    }

    /// With where its paths lead to.
    #[must_use]
    pub fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// On behalf of this AI client.
    #[must_use]
    pub fn by(self, client: Option<ClientName>) -> Self {
        Self { client, ..self }
    }
}
