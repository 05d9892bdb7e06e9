//! What is known of an upstream server before it is connected: how it is reached, and what it may take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lockhouse_policies::OnChange;

/// One upstream server as it was configured, with every reference and variable resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDefinition {
    pub reach: Reach,
    pub limits: ServerLimits,
    pub start: Start,
    /// Tools of the server that Lockhouse may know of; the policy decides about those that are left.
    pub tools: ToolSelection,
    pub decode: Decode,
    pub exposure: Exposure,
    /// What becomes of tools that no person has accepted as they are, where the policy does not say.
    pub on_change: OnChange,
    /// Values that references put where they can be seen, in arguments or the URL: they may be secrets.
    pub referenced: Referenced,
    /// `FILE` or `FILE:LINE`, for people.
    pub origin: String,
}

/// Values that are not shown.
#[derive(Clone, Default, PartialEq)]
pub struct Referenced(pub Vec<String>);

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Reach {
    /// A child process, spoken to over its standard streams.
    Stdio(ServerCommand),
    /// Streamable HTTP.
    Http(HttpEndpoint),
}

/// How one stdio server is started.
#[derive(Clone, Default, PartialEq)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: Option<PathBuf>,
    /// Without one it may do what this user may do.
    pub confinement: Option<Confinement>,
}

/// What a stdio server may do, besides what every program needs to run at all. Enforced by the kernel; paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Confinement {
    /// Files and directories that it may read, and whose programs it may execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read and change.
    pub write: Vec<PathBuf>,
    /// Whether it may make sockets.
    pub network: bool,
}

/// One server over HTTP.
#[derive(Clone, PartialEq)]
pub struct HttpEndpoint {
    pub url: url::Url,
    /// Sent with every request. Their values are secrets.
    pub headers: BTreeMap<String, String>,
    pub authorization: Authorization,
}

/// What is sent as `Authorization`, besides what `headers` say.
#[derive(Clone, Default, PartialEq)]
pub enum Authorization {
    /// Tokens that `lockhouse server login` obtained, if the server asks for any.
    #[default]
    OnDemand,
    /// A fixed token.
    Bearer(String),
    /// OAuth with a client of one's own.
    OAuth(OAuthClient),
    /// OAuth client credentials: no person is asked.
    ClientCredentials(OAuthClient),
}

/// A client that is known to the authorization server.
#[derive(Clone, Default, PartialEq)]
pub struct OAuthClient {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// PEM of a private key, in place of a secret.
    pub private_key: Option<String>,
    /// Of the private key: `RS256`, `ES256` and so on.
    pub signing_algorithm: Option<String>,
    pub scopes: Vec<String>,
    /// Of the loopback address that a browser comes back to. Any free one by default.
    pub callback_port: Option<u16>,
}

/// What one server may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerLimits {
    /// From the start of the process or connection to its list of tools.
    pub start_timeout: Duration,
    /// One call, from the time when it is sent.
    pub call_timeout: Duration,
    /// The longest time that code can give a call of its own. Never less than `call_timeout`.
    pub call_timeout_max: Duration,
    /// Calls at one time; further ones wait.
    pub calls_max: usize,
    /// Calls that may wait, and for how long.
    pub queue_max: usize,
    pub queue_timeout: Duration,
    /// One message of the server, bytes.
    pub message_bytes_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            call_timeout_max: Duration::from_secs(600),
            calls_max: 16,
            queue_max: 256,
            queue_timeout: Duration::from_secs(60),
            message_bytes_max: 24 * 1024 * 1024,
        }
    }
}

/// When a server is started, and when it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Only when it is first needed.
    pub lazy: bool,
    /// Once no call has been made for so long. It is started again when it is needed.
    pub idle_stop: Option<Duration>,
}

/// What a text is that a server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decode {
    /// Text, whatever it looks like: a JSON file that is read stays what it is.
    #[default]
    Text,
    /// The object or array that it is the JSON of, if it is that.
    Json,
}

/// Characters that may stand before the names of a server's tools and prompts.
pub const PREFIX_CHARS_MAX: usize = 32;

/// Who has what a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Whether code imports it.
    pub to_code: bool,
    /// Whether the AI client has it among its own tools, resources and prompts.
    pub directly: Option<Directly>,
}

/// How an AI client has a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directly {
    /// What stands before the names of its tools and prompts; the server's name if it is not said, nothing if it is empty.
    pub prefix: Option<String>,
}

impl Default for Exposure {
    fn default() -> Self {
        Self { to_code: true, directly: None }
    }
}

/// By exact name. An AI client's own file may narrow a server's tools this way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// These alone, where there is a list.
    pub only: Option<Vec<String>>,
    pub except: Vec<String>,
}

impl ToolSelection {
    pub fn admits(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        self.only.as_deref().is_none_or(named) && !named(&self.except)
    }
}

impl ServerDefinition {
    /// With every default.
    pub fn new(reach: Reach, limits: ServerLimits, origin: String) -> Self {
        Self {
            reach,
            limits,
            start: Start::default(),
            tools: ToolSelection::default(),
            decode: Decode::default(),
            exposure: Exposure::default(),
            on_change: OnChange::default(),
            referenced: Referenced::default(),
            origin,
        }
    }

    /// Whether both are the same server, wherever they are written down.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self { reach, limits, start, tools, decode, exposure, on_change, referenced, origin: _ } = self;
        (reach, limits, start, tools) == (&other.reach, &other.limits, &other.start, &other.tools)
            && (decode, exposure, referenced) == (&other.decode, &other.exposure, &other.referenced)
            && *on_change == other.on_change
    }

    /// The values that must not be seen in what the server says, each with the name under which it was configured.
    pub fn secrets(&self) -> BTreeMap<String, String> {
        let mut secrets = match &self.reach {
            Reach::Stdio(command) => command.environment.clone(),
            Reach::Http(endpoint) => endpoint.secrets(),
        };
        let numbered = self.referenced.0.iter().enumerate();
        secrets.extend(numbered.map(|(number, value)| (format!("reference {}", number + 1), value.clone())));
        secrets
    }
}

impl HttpEndpoint {
    /// `HOST:PORT`, for people.
    pub(super) fn place(&self) -> String {
        let port = self.url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.url.host_str().unwrap_or_default())
    }

    pub(super) fn has_authorization_header(&self) -> bool {
        self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    pub(super) fn is_on_this_host(&self) -> bool {
        match self.url.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    fn secrets(&self) -> BTreeMap<String, String> {
        let mut secrets = self.headers.clone();
        let named = |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value));
        match &self.authorization {
            Authorization::OnDemand => {}
            Authorization::Bearer(token) => drop(secrets.insert("bearer token".into(), token.clone())),
            Authorization::OAuth(client) | Authorization::ClientCredentials(client) => {
                secrets.extend(named("client_secret", &client.client_secret));
                secrets.extend(named("private_key", &client.private_key));
            }
        }
        secrets
    }
}

impl std::fmt::Debug for Referenced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

/// Names alone: values may be secrets.
impl std::fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let environment: Vec<_> = self.environment.keys().collect();
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("environment", &environment)
            .finish_non_exhaustive()
    }
}

/// Without anything that may be a secret: a URL can hold one as well.
impl std::fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEndpoint").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_takes_away_and_never_adds() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let selection = ToolSelection { only: Some(names(&["a", "b"])), except: names(&["b"]) };
        assert_eq!(["a", "b", "c"].map(|tool| selection.admits(tool)), [true, false, false]);
        assert!(ToolSelection::default().admits("a"));
    }
}
