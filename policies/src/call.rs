//! Policy evaluation: the call to an upstream server that a policy decides about.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::call_target::CallTarget;
use crate::printable::{printable, truncate_chars};

/// The maximum length of an AI client's name, in characters. Longer names are truncated.
const CLIENT_CHARS_MAX: usize = 64;

/// The name of an AI client. The name selects the client's table `[clients.NAME]` in a policy. A name has at most 64
/// characters, and no control or invisible characters.
///
/// The name of a client that has authenticated also has what the authentication proves of the person, by which
/// `[roles.NAME]` apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "String")]
pub struct ClientName {
    name: String,
    /// What the authentication proves besides the name, such as `group:NAME`. `None` if the client has not authenticated.
    memberships: Option<Arc<[String]>>,
}

impl From<String> for ClientName {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}

impl ClientName {
    /// Creates a client name: truncates `name` to 64 characters and replaces control and invisible characters with
    /// U+FFFD.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: printable(&truncate_chars(name, CLIENT_CHARS_MAX)), memberships: None }
    }

    /// Returns the client's name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the name of a client that has authenticated. `memberships` is what the authentication proves besides the name.
    #[must_use]
    pub fn authenticated(self, memberships: impl Into<Arc<[String]>>) -> Self {
        Self { memberships: Some(memberships.into()), ..self }
    }

    /// Whether the client has authenticated.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.memberships.is_some()
    }

    /// Returns the name and what the authentication proves besides it. Empty if the client has not authenticated.
    pub(crate) fn memberships(&self) -> impl Iterator<Item = &str> {
        let all = self.memberships.iter().flat_map(|all| all.iter().map(String::as_str));
        self.memberships.is_some().then_some(self.name.as_str()).into_iter().chain(all)
    }
}

/// Maps each path from a call's arguments or a policy's rules to the same path with all symbolic links resolved. If a
/// path is missing from the map, its target counts as unknown.
pub type ResolvedPaths = BTreeMap<String, String>;

/// A call to an upstream server that a policy has not decided yet. If the policy permits the call, its arguments are
/// moved into the [`PermittedCall`](crate::PermittedCall), so the arguments that are sent are the ones that were
/// checked.
#[derive(Clone, Debug)]
pub struct Call {
    /// The upstream server that the call is for.
    pub server: ServerName,
    /// The tool, resource, prompt or list that the call requests.
    pub item: CallTarget,
    /// The arguments of the call, by name. Empty if the call's target takes no arguments.
    pub arguments: Map<String, Value>,
    /// What is sent beside the arguments, such as the answers to the server's questions in a direct call; `None` if
    /// nothing is. Approvals and audit records cover it; rules have no conditions on it.
    pub beside: Option<Value>,
    /// The name of the AI client that makes the call; `None` if the client has no name.
    pub client: Option<ClientName>,
    /// The SHA-256 digest of the tool's current definition in hexadecimal; `None` if the definition is unknown.
    pub definition: Option<String>,
    /// Maps each path that [`Policy::paths_to_resolve`](crate::Policy::paths_to_resolve) returned for this call
    /// to the same path with its symbolic links resolved.
    pub resolved_paths: ResolvedPaths,
}

/// The name under which [`everything_sent`] lists what is sent beside the arguments.
const BESIDE: &str = "(beside the arguments)";

/// Returns all that is sent: the arguments, and what is sent beside them, under a name that no argument has.
pub(crate) fn everything_sent<'a>(
    arguments: &'a Map<String, Value>,
    beside: Option<&Value>,
) -> Cow<'a, Map<String, Value>> {
    let Some(beside) = beside else { return Cow::Borrowed(arguments) };
    let mut name = BESIDE.to_owned();
    while arguments.contains_key(&name) {
        name.push('\'');
    }
    let mut all = arguments.clone();
    all.insert(name, beside.clone());
    Cow::Owned(all)
}

impl Call {
    /// Creates a call that has no arguments, AI client, definition digest or resolved paths.
    #[must_use]
    pub fn new(server: &ServerName, item: impl Into<CallTarget>) -> Self {
        Self {
            server: server.clone(),
            item: item.into(),
            arguments: Map::new(),
            beside: None,
            client: None,
            definition: None,
            resolved_paths: ResolvedPaths::new(),
        }
    }

    /// Sets the arguments of the call.
    #[must_use]
    pub fn with_arguments(self, arguments: Map<String, Value>) -> Self {
        Self { arguments, ..self }
    }

    /// Sets what is sent beside the arguments.
    #[must_use]
    pub fn with_beside(self, beside: Option<Value>) -> Self {
        Self { beside, ..self }
    }

    /// Sets the SHA-256 digest of the tool's current definition, in hexadecimal.
    #[must_use]
    pub fn with_definition_digest(self, definition: impl Into<String>) -> Self {
        Self { definition: Some(definition.into()), ..self }
    }

    /// Sets the resolved paths of the call: a map from each path to the same path with its symbolic links
    /// resolved.
    #[must_use]
    pub fn with_resolved_paths(self, resolved_paths: ResolvedPaths) -> Self {
        Self { resolved_paths, ..self }
    }

    /// Sets the AI client that makes the call.
    #[must_use]
    pub fn with_client(self, client: Option<ClientName>) -> Self {
        Self { client, ..self }
    }
}
