//! The configuration of an upstream server: how it is reached, and its limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lockhouse_policies::OnChange;

/// One configured upstream server, with all references and variables resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDefinition {
    pub endpoint: Endpoint,
    pub limits: ServerLimits,
    pub start: StartOptions,
    /// The server's tools that Lockhouse uses at all. The policy decides about these.
    pub tools: ToolSelection,
    pub decode: DecodeRules,
    pub exposure: Exposure,
    /// What happens to tools whose current definition no user has accepted, unless the policy says otherwise.
    pub on_change: OnChange,
    /// Values that references put into arguments or the URL. They may be secrets.
    pub referenced: ReferencedValues,
    /// `FILE` or `FILE:LINE` where the server is configured, for messages.
    pub origin: String,
}

/// Values of a server's configuration that must not be shown, since they may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct ReferencedValues(pub Vec<String>);

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// A child process, over its standard streams.
    Stdio(ServerCommand),
    /// A URL, over streamable HTTP.
    Http(HttpEndpoint),
}

/// How a stdio server is started.
#[derive(Clone, Default, PartialEq)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: Option<PathBuf>,
    /// What the sandbox of the server permits. `None` means no sandbox: the server has all rights of the user who
    /// runs Lockhouse.
    pub confinement: Option<Confinement>,
}

/// What a sandboxed stdio server may do, besides what every program needs to run. The kernel enforces it. Paths are
/// absolute.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Confinement {
    /// Files and directories that the server may read, and whose programs it may execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that the server may read and change.
    pub write: Vec<PathBuf>,
    /// Whether the server may create sockets.
    pub network: bool,
}

/// The endpoint of a server over HTTP.
#[derive(Clone, PartialEq)]
pub struct HttpEndpoint {
    pub url: url::Url,
    /// Headers that are sent with every request. Their values are secrets.
    pub headers: BTreeMap<String, String>,
    pub authorization: Authorization,
}

/// The source of the `Authorization` header, unless `headers` contain one.
#[derive(Clone, Default, PartialEq)]
pub enum Authorization {
    /// Tokens that `lockhouse server login` obtained, if the server requires any.
    #[default]
    OnDemand,
    /// A fixed token.
    Bearer(String),
    /// OAuth with a registered client.
    OAuth(OAuthClient),
    /// OAuth client credentials, without any user.
    ClientCredentials(OAuthClient),
}

/// An OAuth client that is registered with the authorization server.
#[derive(Clone, Default, PartialEq)]
pub struct OAuthClient {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// A private key in PEM, used instead of a secret.
    pub private_key: Option<String>,
    /// The algorithm of the private key: `RS256`, `ES256` and so on.
    pub signing_algorithm: Option<String>,
    pub scopes: Vec<String>,
    /// The port of the loopback address that the browser is redirected to. Any free port by default.
    pub callback_port: Option<u16>,
}

/// Timeouts and limits of one upstream server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerLimits {
    /// Time limit from the start of the server's process or connection until it has listed its tools.
    pub start_timeout: Duration,
    /// Time limit of one call, from when it is sent to the server.
    pub call_timeout: Duration,
    /// The longest timeout that submitted code can set for a call. Never less than `call_timeout`.
    pub call_timeout_max: Duration,
    /// Maximum number of concurrent calls of the server; further calls wait.
    pub calls_max: usize,
    /// Maximum number of calls that wait for a slot, and how long each may wait.
    pub queue_max: usize,
    pub queue_timeout: Duration,
    /// Maximum number of bytes of one message of the server.
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

/// When an upstream server is started, and when it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// Whether the server is started only when it is first needed.
    pub lazy: bool,
    /// The server is stopped after this time without a call, and started again when it is needed.
    pub idle_stop: Option<Duration>,
}

/// When programs get text results that are JSON as values, for a server and for single tools of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeRules {
    /// For tools that no entry of `tools` names.
    pub default: TextDecoding,
    /// By the name of a tool, or by the beginning of names and `*`. The longest entry that matches decides.
    pub tools: Vec<(String, TextDecoding)>,
}

impl DecodeRules {
    pub fn for_tool(&self, tool: &str) -> TextDecoding {
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => tool == pattern,
        };
        let matching = self.tools.iter().filter(|(pattern, _)| matches(pattern));
        matching.max_by_key(|(pattern, _)| pattern.len()).map_or(self.default, |(_, decoding)| *decoding)
    }
}

/// The configured form: the default, then `TOOL = MODE` for each entry.
impl std::fmt::Display for DecodeRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.default.as_str())?;
        self.tools.iter().try_for_each(|(tool, decoding)| write!(f, ", {tool} = {}", decoding.as_str()))
    }
}

/// When a program gets text that is, whole, a JSON object, array or null as a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextDecoding {
    /// If the tool declares no output schema, or one that says only that the result is text.
    #[default]
    Auto,
    /// Always, also text within structured content.
    Json,
    /// Always, and the result is a list even if the server answers with a single text.
    List,
    /// Never: text stays text.
    Text,
}

impl TextDecoding {
    /// The values of the configuration key.
    pub const NAMES: [&str; 4] = ["auto", "json", "list", "text"];

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Auto, Self::Json, Self::List, Self::Text]
            .into_iter()
            .find(|decoding| decoding.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Json => "json",
            Self::List => "list",
            Self::Text => "text",
        }
    }
}

/// Maximum characters of the prefix for the names of a server's tools and prompts.
pub const PREFIX_CHARS_MAX: usize = 32;

/// Whether submitted code, AI clients directly, or both can use a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Whether submitted code can import it.
    pub to_code: bool,
    /// How AI clients see the server's tools, resources and prompts among those of Lockhouse; `None` if they do not.
    pub direct: Option<DirectExposure>,
}

/// How a server's tools are named for AI clients that use it directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectExposure {
    /// The prefix for names of tools and prompts: the server's name if `None`, no prefix if empty.
    pub prefix: Option<String>,
}

impl Default for Exposure {
    fn default() -> Self {
        Self { to_code: true, direct: None }
    }
}

/// A selection of tools by exact name. The configuration of an AI client can restrict a server's tools this way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// The only tools that are used; `None` if all are.
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
    /// Creates a server definition from its endpoint, limits and origin, with defaults for everything else.
    pub fn new(endpoint: Endpoint, limits: ServerLimits, origin: String) -> Self {
        Self {
            endpoint,
            limits,
            start: StartOptions::default(),
            tools: ToolSelection::default(),
            decode: DecodeRules::default(),
            exposure: Exposure::default(),
            on_change: OnChange::default(),
            referenced: ReferencedValues::default(),
            origin,
        }
    }

    /// Whether two server definitions are equal, regardless of where they are configured.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let Self { endpoint, limits, start, tools, decode, exposure, on_change, referenced, origin: _ } =
            self;
        (endpoint, limits, start, tools) == (&other.endpoint, &other.limits, &other.start, &other.tools)
            && (decode, exposure, referenced) == (&other.decode, &other.exposure, &other.referenced)
            && *on_change == other.on_change
    }

    /// The values to redact from the server's output, each with its name in the configuration.
    pub fn secrets(&self) -> BTreeMap<String, String> {
        let mut secrets = match &self.endpoint {
            Endpoint::Stdio(command) => command.environment.clone(),
            Endpoint::Http(endpoint) => endpoint.secrets(),
        };
        let numbered = self.referenced.0.iter().enumerate();
        secrets.extend(numbered.map(|(number, value)| (format!("reference {}", number + 1), value.clone())));
        secrets
    }
}

impl HttpEndpoint {
    /// Returns `HOST:PORT` of the URL, for messages.
    pub(super) fn host_and_port(&self) -> String {
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

impl std::fmt::Debug for ReferencedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

/// Prints names only: the values may be secrets.
impl std::fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let environment: Vec<_> = self.environment.keys().collect();
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("environment", &environment)
            .finish_non_exhaustive()
    }
}

/// Prints the host only: headers and the URL may contain secrets.
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
