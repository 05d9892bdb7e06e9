//! The configuration of an upstream server: how it is reached, and its limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_base::directories::expand_home;
use lockhouse_base::url_protection::is_of_this_host;
use lockhouse_policies::OnChange;
use serde::{Deserialize, Serialize};

use super::tool_pattern::names_tool;
use super::tool_scopes::ToolScopes;

/// One configured upstream server, with all placeholders replaced by their values.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct ServerDefinition {
    pub endpoint: Endpoint,
    pub limits: ServerLimits,
    pub start: StartOptions,
    /// The tools of the server that Lockhouse offers. The policy decides which of them may be called.
    pub tools: ToolSelection,
    pub decode: DecodeRules,
    pub exposure: Exposure,
    /// What happens to tools whose current definition no user has accepted, unless the policy sets something else for
    /// the server.
    pub on_change: OnChange,
    /// Whether AI clients may share one process of the server, if they share an engine.
    pub is_shared: bool,
    /// The credential that each user needs for calls of the server. `None` if all calls use the credential in the configuration,
    /// or the login of the service.
    pub user_credential: Option<UserCredential>,
    /// Values that replaced placeholders, such as `${env:…}`, in the arguments or the URL. They may be secrets.
    pub referenced: ReferencedValues,
    /// Whether the arguments of the server's process have a secret. Every account of this host can read the arguments of
    /// all processes.
    pub has_secret_arguments: bool,
    /// `FILE` or `FILE:LINE` where the server is configured, for error messages.
    pub origin: String,
}

/// The kind of credential that each user needs for calls of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UserCredential {
    /// The tokens of an OAuth login.
    Login,
    /// A secret, which is sent in the header of this name, or is the value of the environment variable of this name.
    Secret(String),
    /// A token that comes from the one with which the user authenticates to the service.
    Exchange(TokenExchange),
}

/// How the tokens of users become tokens for a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenExchange {
    pub kind: ExchangeKind,
    /// What the identity provider calls the server, besides its URL. `None` if it needs no other name.
    pub audience: Option<String>,
    /// The scopes of tools, if each run has tokens of its own. `None` if all runs of a user share one.
    pub per_run: Option<ToolScopes>,
}

/// The way from a token of a user to a token for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// The identity provider issues the token for the server.
    Token,
    /// The identity provider issues an assertion, and the authorization server of the upstream server the token.
    Assertion,
}

/// Values that replaced placeholders in a server's configuration. They must not be shown, since they may be secrets.
#[derive(Clone, Default, PartialEq, Hash)]
pub struct ReferencedValues(pub Vec<String>);

/// How an upstream server is reached.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Endpoint {
    /// The server is a child process, reached over its standard input and output.
    Stdio(ServerCommand),
    /// The server is reached at a URL.
    Http(HttpEndpoint),
    /// Another service starts the server for each connection to this Unix domain socket, and the server speaks over it as
    /// over standard input and output.
    Socket(PathBuf),
}

impl Endpoint {
    /// Whether the server is reached over the deprecated transport HTTP+SSE.
    pub fn uses_sse(&self) -> bool {
        matches!(self, Self::Http(endpoint) if endpoint.transport == HttpTransport::Sse)
    }
}

/// How an upstream server over standard input and output is started.
#[derive(Clone, Default, PartialEq, Hash, Serialize, Deserialize)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: Option<PathBuf>,
    /// What the sandbox of the server permits. `None` means no sandbox: the server has all rights of the user who
    /// runs Lockhouse.
    pub confinement: Option<Confinement>,
    /// What the administrator's requirements determine about the process. `None` if they neither fix nor approve the
    /// server.
    pub requirement: Option<ProgramRequirement>,
    pub run_as: RunAs,
    /// Whether all hosts of a cluster use one process of the server. Otherwise each host starts its own.
    pub is_single: bool,
}

/// In which account the process of a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RunAs {
    /// That of Lockhouse.
    #[default]
    Lockhouse,
    /// That of the person whom the engine of the system serves: the launcher in this person's session starts the process.
    Person,
}

/// What requirements determine about the process of a server that they fix or approve. Such a process does not depend on
/// the user's environment: it inherits `HOME` and `LANG`, and has [`REQUIRED_PATH`](super::REQUIRED_PATH).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramRequirement {
    /// The SHA-256 that the program has, in lower-case hexadecimal digits, whenever it starts. `None` if it may change.
    pub sha256: Option<String>,
}

/// What a sandboxed upstream server may access, as configured, in addition to the files that every program needs to
/// run. The kernel enforces these restrictions. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Hash, Serialize, Deserialize)]
pub struct Confinement {
    /// The profile to which `read` and `write` add. `None` means that they are all.
    pub profile: Option<ConfinementProfile>,
    /// Files and directories that the server may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that the server may read and change, but not execute.
    pub write: Vec<PathBuf>,
    pub network: Network,
    /// Whether the server may create user namespaces, as browsers do for sandboxes of their own. In such a namespace, a
    /// process has all capabilities, and so reaches more code of the kernel.
    pub user_namespaces: bool,
    /// Whether the server is not started if the kernel cannot enforce the restrictions of files. Otherwise it starts with
    /// what the kernel enforces.
    pub requires_full: bool,
}

impl Confinement {
    /// Returns the sandbox that consists of a profile.
    pub fn with_profile(profile: ConfinementProfile) -> Self {
        Self { profile: Some(profile), network: Network::Internet, ..Self::default() }
    }

    /// Returns the sandbox with a home directory in place of `~` at the beginning of its paths.
    #[must_use]
    pub fn in_home(self, home: Option<&Path>) -> Self {
        let expand = |paths: Vec<PathBuf>| paths.iter().map(|path| expand_home(path, home)).collect();
        Self { read: expand(self.read), write: expand(self.write), ..self }
    }
}

/// A set of permissions for sandboxed upstream servers that Lockhouse derives from how the server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConfinementProfile {
    /// Language runtimes, a folder of the server's own for caches and temporary files, and the paths in its arguments,
    /// working directory and environment variables; TCP and UDP.
    Default,
}

impl ConfinementProfile {
    /// The names of the profiles, as they are written in the configuration.
    pub const NAMES: [&str; 1] = ["default"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => Self::NAMES[0],
        }
    }
}

/// Which sockets a sandboxed upstream server may create, beside connected pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Network {
    #[default]
    None,
    /// Those of TCP and UDP. Not Unix sockets, because the D-Bus, keyring, agent or container service behind one does
    /// on request what the sandbox forbids.
    Internet,
    All,
}

/// How an upstream server over HTTP is reached: its URL, headers and authorization.
#[derive(Clone, PartialEq, Hash)]
pub struct HttpEndpoint {
    pub url: url::Url,
    pub transport: HttpTransport,
    /// Headers that are sent with every request. Their values are secrets.
    pub headers: BTreeMap<String, String>,
    pub authorization: Authorization,
    pub proxy: Proxy,
    /// Whether redirects within the same origin are followed. Not if requirements decide about the URL, because the
    /// target would escape them.
    pub follows_redirects: bool,
}

/// The MCP transport to an upstream server at a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpTransport {
    #[default]
    Streamable,
    /// HTTP+SSE of protocol version 2024-11-05, which MCP has deprecated. The server itself names a second URL, of the
    /// same origin, for the messages to it.
    Sse,
}

impl HttpTransport {
    /// The names of the transports, as they are written in the configuration.
    pub const NAMES: [&str; 2] = ["http", "sse"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streamable => Self::NAMES[0],
            Self::Sse => Self::NAMES[1],
        }
    }
}

/// The HTTP proxy over which an upstream server is reached. Servers on this host are always reached directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// The one that environment variables such as `HTTPS_PROXY` name, if any.
    #[default]
    Environment,
    None,
    Address(url::Url),
}

/// How Lockhouse obtains the `Authorization` header of requests to an upstream server.
#[derive(Clone, Default, PartialEq, Hash)]
pub enum Authorization {
    /// The tokens that a user obtained with `lockhouse server login`, if the server requires any. Not used if the
    /// configured headers contain `Authorization`.
    #[default]
    OnDemand,
    /// A fixed bearer token from the configuration.
    Bearer(String),
    /// The tokens that a user obtained with `lockhouse server login`, which uses this configured OAuth client.
    OAuth(OAuthClient),
    /// An access token that Lockhouse itself obtains with this client by the client credentials grant of OAuth, without
    /// any user.
    ClientCredentials(OAuthClient),
}

/// The configuration of Lockhouse as an OAuth client at an authorization server.
#[derive(Clone, Default, PartialEq, Hash)]
pub struct OAuthClient {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The client's private key in PEM. If it is set, it is used instead of `client_secret`.
    pub private_key: Option<String>,
    /// The algorithm of the private key: `RS256`, `ES256` and so on. `None` means `RS256`.
    pub signing_algorithm: Option<String>,
    pub scopes: Vec<String>,
    /// The port on the loopback address to which the browser is redirected after a login. `None` means any free port.
    pub callback_port: Option<u16>,
}

/// Timeouts and limits of one upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub struct ServerLimits {
    /// Time limit from the start of the server's process or connection until it has listed its tools. When the tools
    /// are listed again later, this is the time limit for each page of the list.
    pub start_timeout: Duration,
    /// Timeout of a call for which submitted code sets none, from when the call is sent to the server. Each progress
    /// notification of the server restarts it.
    pub call_timeout: Duration,
    /// The longest timeout that submitted code can set for a call. If it is less than `call_timeout`, `call_timeout` is
    /// the longest timeout.
    pub call_timeout_max: Duration,
    /// Maximum number of concurrent calls to the server; further calls wait in a queue.
    pub calls_max: usize,
    /// Maximum number of calls in the server's queue; further calls fail.
    pub queue_max: usize,
    /// How long a call may wait in the server's queue before it fails.
    pub queue_timeout: Duration,
    /// Maximum size in bytes of one message that the server sends. A call whose result exceeds this size fails.
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

/// The oldest protocol version that a server may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolMinimum(&'static str);

impl ProtocolMinimum {
    /// The name of the minimum with which a server may answer any version, also an unknown one.
    const ANY: &str = "any";
    /// That, and the known versions, which are dates, from the oldest to the newest.
    pub const NAMES: [&str; 6] =
        [Self::ANY, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

    /// Returns the minimum with this name. `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|known| *known == name).map(Self)
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether a server may answer this version: it is known, and not older.
    pub(crate) fn permits(self, version: &str) -> bool {
        self.0 == Self::ANY || (version != Self::ANY && Self::NAMES.contains(&version) && version >= self.0)
    }
}

impl Default for ProtocolMinimum {
    fn default() -> Self {
        Self(Self::NAMES[1])
    }
}

/// When an upstream server is started, and when it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StartOptions {
    /// Whether only the older MCP handshake (`initialize`, protocol 2025-11-25 and earlier) is used with the server, even
    /// if it understands a newer protocol.
    pub legacy_handshake: bool,
    pub protocol_minimum: ProtocolMinimum,
    /// Whether the server is started only when it is first needed.
    pub lazy: bool,
    /// The server is stopped after this time without a call, and started again when a caller needs it. `None` means
    /// that the server is not stopped for lack of calls.
    pub idle_stop: Option<Duration>,
}

/// Rules that say for which tools of one upstream server a program gets JSON result text as a parsed value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DecodeRules {
    /// How result text is treated for tools that no entry of `tools` matches.
    pub default: TextDecoding,
    /// How result text is treated for the named tools. The string is the name of a tool, or a prefix of tool names
    /// followed by `*`. If several entries match a tool, the longest string applies.
    pub tools: Vec<(String, TextDecoding)>,
}

impl DecodeRules {
    pub fn for_tool(&self, tool: &str) -> TextDecoding {
        let matching = self.tools.iter().filter(|(pattern, _)| names_tool(pattern, tool));
        matching.max_by_key(|(pattern, _)| pattern.len()).map_or(self.default, |(_, decoding)| *decoding)
    }
}

/// Prints the rules as they are configured: the default, then `TOOL = MODE` for each entry.
impl std::fmt::Display for DecodeRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.default.as_str())?;
        self.tools.iter().try_for_each(|(tool, decoding)| write!(f, ", {tool} = {}", decoding.as_str()))
    }
}

/// Whether a program gets result text as a parsed value if the whole text is a JSON object, array or null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextDecoding {
    /// Parses the text if the tool declares no output schema, or a schema which says only that the result is
    /// text.
    #[default]
    Auto,
    /// Always parses JSON text, also text within structured content.
    Json,
    /// Always parses JSON text. The program gets a list even if the server answers with a single text.
    List,
    /// Never parses the text; the program gets it as a string.
    Text,
}

impl TextDecoding {
    /// The names of the modes, as they are written in the configuration.
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

/// Maximum length of the prefix that is put before the names of a server's tools and prompts, in characters.
pub const PREFIX_CHARS_MAX: usize = 32;

/// Who can use an upstream server: submitted code, AI clients directly, or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exposure {
    /// Whether submitted code can import the server as a module.
    pub to_code: bool,
    /// How AI clients see the server's tools, resources and prompts beside Lockhouse's own tools; `None` if AI clients
    /// do not see them.
    pub direct: Option<DirectExposure>,
}

/// How the tools and prompts of an upstream server are named for AI clients that use it directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DirectExposure {
    /// The prefix of the names of the server's tools and prompts. `None` means the server's name; an empty string means
    /// no prefix.
    pub prefix: Option<String>,
}

impl Default for Exposure {
    fn default() -> Self {
        Self { to_code: true, direct: None }
    }
}

/// Which tools of an upstream server Lockhouse offers, selected by exact name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToolSelection {
    /// The names of the only tools that are offered; `None` if all tools are offered. A tool in `except` is never
    /// offered.
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
    /// Returns the scopes of tools, if each run has tokens of its own. `None` for other servers.
    pub(super) fn run_scopes(&self) -> Option<&ToolScopes> {
        match &self.user_credential {
            Some(UserCredential::Exchange(exchange)) => exchange.per_run.as_ref(),
            Some(UserCredential::Login | UserCredential::Secret(_)) | None => None,
        }
    }

    /// Returns the scopes that every token has.
    pub(super) fn scopes(&self) -> &[String] {
        match &self.endpoint {
            Endpoint::Http(endpoint) => match &endpoint.authorization {
                Authorization::OAuth(client) => &client.scopes,
                _ => &[],
            },
            Endpoint::Stdio(_) | Endpoint::Socket(_) => &[],
        }
    }

    /// Makes these the scopes of every token.
    pub(super) fn set_scopes(&mut self, scopes: &str) {
        let Endpoint::Http(endpoint) = &mut self.endpoint else { return };
        let mut client = match &endpoint.authorization {
            Authorization::OAuth(client) => client.clone(),
            _ => OAuthClient::default(),
        };
        client.scopes = scopes.split_ascii_whitespace().map(str::to_owned).collect();
        endpoint.authorization = Authorization::OAuth(client);
    }

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
            is_shared: true,
            user_credential: None,
            referenced: ReferencedValues::default(),
            has_secret_arguments: false,
            origin,
        }
    }

    /// Whether two server definitions are equal, regardless of the place in the configuration that they come from.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let Self {
            endpoint,
            limits,
            start,
            tools,
            decode,
            exposure,
            on_change,
            is_shared,
            user_credential,
            referenced,
            // Follows from the arguments and the references.
            has_secret_arguments: _,
            origin: _,
        } = self;
        (endpoint, limits, start, tools) == (&other.endpoint, &other.limits, &other.start, &other.tools)
            && (decode, exposure, referenced) == (&other.decode, &other.exposure, &other.referenced)
            && (*on_change, *is_shared) == (other.on_change, other.is_shared)
            && *user_credential == other.user_credential
    }

    /// Returns the values to redact from the server's output, since they may be secrets. The keys are names that
    /// replace the values: those of environment variables or headers, or other descriptions.
    pub fn secrets(&self) -> BTreeMap<String, String> {
        let mut secrets = match &self.endpoint {
            Endpoint::Stdio(command) => command.environment.clone(),
            Endpoint::Http(endpoint) => endpoint.secrets(),
            Endpoint::Socket(_) => BTreeMap::new(),
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
        is_of_this_host(&self.url)
    }

    fn secrets(&self) -> BTreeMap<String, String> {
        let mut secrets = self.headers.clone();
        // A server may show the credentials without the scheme before them.
        let credentials = |(name, value): (&String, &String)| {
            let is_authorization = name.to_ascii_lowercase().ends_with("authorization");
            let (_, credentials) = value.split_once(' ').filter(|_| is_authorization)?;
            Some((format!("{name} credentials"), credentials.to_owned()))
        };
        secrets.extend(self.headers.iter().filter_map(credentials));
        let named = |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value));
        if let Proxy::Address(proxy) = &self.proxy {
            secrets.extend(named("proxy password", &proxy.password().map(str::to_owned)));
        }
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

/// Prints the program and the names of the environment variables. Their values and the arguments may be secrets and are
/// left out.
impl std::fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let environment: Vec<_> = self.environment.keys().collect();
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("environment", &environment)
            .finish_non_exhaustive()
    }
}

/// Prints only the host. The headers and the rest of the URL may contain secrets.
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
