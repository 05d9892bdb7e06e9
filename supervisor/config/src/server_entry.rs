//! An upstream server as a configuration file of any dialect (AI client's format) describes it, with placeholders that
//! are not resolved yet.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use lockhouse_policies::OnChange;
use lockhouse_upstream::{
    Authorization, Confinement, Endpoint, Exposure, HttpEndpoint, HttpTransport, OAuthClient, Proxy,
    ReferencedValues, RunAs, ServerCommand, ServerDefinition, ServerLimits, StartOptions, TextDecoding,
    ToolSelection, UserCredential,
};

use super::env_file;
use super::placeholders::{Environment, Template};
use super::sandbox_choice::{NoSandboxReason, SandboxChoice};
use super::secret_detection::have_secrets;
use super::skip_reason::SkipReason;

/// The configuration of an upstream server, with placeholders that are not resolved yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerEntry {
    pub endpoint: EntryEndpoint,
    pub limits: EntryLimits,
    pub start: StartOptions,
    pub tools: ToolSelection,
    pub decode: TextDecoding,
    /// Who can use the server. `None` if the file does not say so.
    pub(crate) exposure: Option<Exposure>,
    /// What to do with tools whose definitions differ from those that the user accepted. `None` if neither the file nor
    /// its format determines it.
    pub on_change: Option<OnChange>,
    pub(crate) is_shared: bool,
    pub(crate) user_credential: Option<UserCredential>,
    /// Descriptions of the server's settings in the file that Lockhouse cannot import. Each description also says what
    /// happens instead.
    pub not_imported: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EntryEndpoint {
    Command(EntryCommand),
    Url(EntryUrl),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryCommand {
    pub program: Template,
    pub arguments: Vec<Template>,
    pub environment: BTreeMap<String, Template>,
    /// The path of a file with `NAME=VALUE` lines, which set variables that `environment` does not set.
    pub(crate) env_file: Option<Template>,
    pub directory: Option<Template>,
    pub confinement: Option<Confinement>,
    /// In which account of a managed host the process runs.
    pub(crate) run_as: RunAs,
    /// Whether all hosts of a cluster use one process.
    pub(crate) is_single: bool,
    /// Why a person wants the server without a sandbox. `None` if nobody said so.
    pub(crate) no_sandbox: Option<NoSandboxReason>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryUrl {
    pub url: Template,
    pub transport: HttpTransport,
    pub headers: BTreeMap<String, Template>,
    pub bearer_token: Option<Template>,
    pub oauth: Option<EntryOAuth>,
    pub proxy: Option<Template>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryOAuth {
    pub(crate) client_credentials: bool,
    pub(crate) client_id: Option<Template>,
    pub client_secret: Option<Template>,
    pub(crate) private_key: Option<Template>,
    pub(crate) signing_algorithm: Option<String>,
    pub scopes: Vec<String>,
    pub callback_port: Option<u16>,
}

/// The limits that a file sets for an upstream server. `None` means the default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EntryLimits {
    pub start_timeout: Option<Duration>,
    pub call_timeout: Option<Duration>,
    pub(crate) call_timeout_max: Option<Duration>,
    pub parallel_calls: Option<usize>,
    pub queue: Option<usize>,
    pub queue_timeout: Option<Duration>,
}

impl EntryLimits {
    /// Returns these limits, with those of `other` where these have none.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            start_timeout: self.start_timeout.or(other.start_timeout),
            call_timeout: self.call_timeout.or(other.call_timeout),
            call_timeout_max: self.call_timeout_max.or(other.call_timeout_max),
            parallel_calls: self.parallel_calls.or(other.parallel_calls),
            queue: self.queue.or(other.queue),
            queue_timeout: self.queue_timeout.or(other.queue_timeout),
        }
    }
}

impl ServerEntry {
    pub(crate) fn new(endpoint: EntryEndpoint) -> Self {
        Self {
            endpoint,
            limits: EntryLimits::default(),
            start: StartOptions::default(),
            tools: ToolSelection::default(),
            decode: TextDecoding::default(),
            exposure: None,
            on_change: None,
            is_shared: true,
            user_credential: None,
            not_imported: Vec::new(),
        }
    }

    /// Copies the variables of the file that `envFile` names into the `environment` of the server's command, except
    /// those that are set there already. Used for import, since Lockhouse's own configuration has no key for such a
    /// file.
    pub fn with_env_file(mut self, environment: &Environment) -> Result<Self, SkipReason> {
        if let EntryEndpoint::Command(command) = &mut self.endpoint
            && let Some(path) = command.env_file.take()
        {
            for (name, text) in env_file_variables(&path, environment)? {
                command.environment.entry(name).or_insert_with(|| Template::literal(text));
            }
        }
        Ok(self)
    }

    /// Sets the sandbox of a server that is a process. Does nothing for other servers.
    pub fn set_sandbox(&mut self, choice: &SandboxChoice) {
        let EntryEndpoint::Command(command) = &mut self.endpoint else { return };
        (command.confinement, command.no_sandbox) = match choice {
            SandboxChoice::Profile { profile, user_namespaces } => {
                let confinement = Confinement::with_profile(*profile);
                (Some(Confinement { user_namespaces: *user_namespaces, ..confinement }), None)
            }
            SandboxChoice::Without(reason) => (None, Some(reason.clone())),
        };
    }

    /// Permits a server with a sandbox to create user namespaces.
    pub fn permit_user_namespaces(&mut self) {
        if let EntryEndpoint::Command(EntryCommand { confinement: Some(confinement), .. }) =
            &mut self.endpoint
        {
            confinement.user_namespaces = true;
        }
    }

    /// Whether the server is a process that Lockhouse starts.
    pub fn is_process(&self) -> bool {
        matches!(self.endpoint, EntryEndpoint::Command(_))
    }

    /// Whether the server uses the deprecated transport HTTP+SSE.
    pub fn uses_sse(&self) -> bool {
        matches!(&self.endpoint, EntryEndpoint::Url(url) if url.transport == HttpTransport::Sse)
    }

    /// Describes the server by its program or host name, without anything that may be a secret.
    pub fn summary(&self) -> String {
        match &self.endpoint {
            EntryEndpoint::Command(command) => format!("stdio {}", command.program.to_own_syntax()),
            EntryEndpoint::Url(url) => {
                let parsed = url.url.as_literal().and_then(|url| url::Url::parse(url).ok());
                let host = parsed.as_ref().and_then(url::Url::host_str).unwrap_or("(a placeholder)");
                format!("{} {host}", url.transport.as_str())
            }
        }
    }

    /// Returns the values that placeholders insert into the server's arguments or URL, and that must not be shown.
    /// Values that are existing paths are left out, since they are no secrets.
    fn placeholder_values(&self, environment: &Environment) -> ReferencedValues {
        let templates: Vec<&Template> = match &self.endpoint {
            EntryEndpoint::Command(command) => command.arguments.iter().collect(),
            EntryEndpoint::Url(url) => vec![&url.url],
        };
        let values = templates.into_iter().flat_map(|template| template.placeholder_values(environment));
        ReferencedValues(values.filter(|value| !Path::new(value).exists()).collect())
    }

    /// Whether the arguments of the server's process have a secret: a value from a place for secrets, or one that looks
    /// like a secret. `resolved` is the endpoint without placeholders.
    fn has_secret_arguments(&self, resolved: &Endpoint) -> bool {
        let (EntryEndpoint::Command(written), Endpoint::Stdio(resolved)) = (&self.endpoint, resolved) else {
            return false;
        };
        written.arguments.iter().any(Template::has_secret_placeholder)
            || have_secrets(resolved.arguments.clone())
    }

    /// Resolves all placeholders and validates the resulting server definition. `defaults` contains the limits that the
    /// entry does not set; `origin` is the location of the entry for error messages.
    pub fn resolve(
        &self,
        environment: &Environment,
        defaults: ServerLimits,
        origin: String,
    ) -> Result<ServerDefinition, SkipReason> {
        let reach = match &self.endpoint {
            EntryEndpoint::Command(command) => Endpoint::Stdio(command.resolve(environment)?),
            EntryEndpoint::Url(url) => url.resolve(environment)?,
        };
        let limits = ServerLimits {
            start_timeout: self.limits.start_timeout.unwrap_or(defaults.start_timeout),
            call_timeout: self.limits.call_timeout.unwrap_or(defaults.call_timeout),
            call_timeout_max: self.limits.call_timeout_max.unwrap_or(defaults.call_timeout_max),
            calls_max: self.limits.parallel_calls.unwrap_or(defaults.calls_max),
            queue_max: self.limits.queue.unwrap_or(defaults.queue_max),
            queue_timeout: self.limits.queue_timeout.unwrap_or(defaults.queue_timeout),
            message_bytes_max: defaults.message_bytes_max,
        };
        let mut definition = ServerDefinition::new(reach, limits, origin);
        definition.referenced = self.placeholder_values(environment);
        definition.has_secret_arguments = self.has_secret_arguments(&definition.endpoint);
        definition.start = self.start;
        definition.tools = self.tools.clone();
        definition.decode.default = self.decode;
        definition.exposure = self.exposure.clone().unwrap_or_default();
        definition.on_change = self.on_change.unwrap_or_default();
        definition.is_shared = self.is_shared;
        definition.user_credential = self.user_credential.clone();
        Ok(definition)
    }
}

fn resolve_value(key: &str, template: &Template, environment: &Environment) -> Result<String, SkipReason> {
    let skip = |reason| SkipReason::Placeholder { key: key.to_owned(), reason };
    template.resolve(environment).map_err(skip)
}

fn resolve_values(
    key: &str,
    templates: &BTreeMap<String, Template>,
    environment: &Environment,
) -> Result<BTreeMap<String, String>, SkipReason> {
    let resolved = |(name, template): (&String, &Template)| {
        Ok((name.clone(), resolve_value(&format!("{key}: {name:?}"), template, environment)?))
    };
    templates.iter().map(resolved).collect()
}

impl EntryCommand {
    fn resolve(&self, environment: &Environment) -> Result<ServerCommand, SkipReason> {
        let program = resolve_value("command", &self.program, environment)?;
        let arguments = self.arguments.iter().map(|argument| resolve_value("args", argument, environment));
        let arguments: Vec<String> = arguments.collect::<Result<_, _>>()?;
        // Skip Lockhouse's own entry in an AI client's file: it would start itself recursively.
        let is_package = |argument: &String| {
            argument == "lockhouse"
                || argument.starts_with("lockhouse@")
                || argument.starts_with("lockhouse==")
        };
        let is_ours = Path::new(&program).file_name().is_some_and(|name| name == "lockhouse")
            || arguments.iter().any(is_package);
        if is_ours && arguments.iter().any(|argument| argument == "serve") {
            return Err(SkipReason::LockhouseItself);
        }
        let mut variables = match &self.env_file {
            Some(path) => env_file_variables(path, environment)?,
            None => BTreeMap::new(),
        };
        variables.extend(resolve_values("env", &self.environment, environment)?);
        let is_variable = |name: &String, value: &String| {
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
        };
        if let Some((name, _)) = variables.iter().find(|(name, value)| !is_variable(name, value)) {
            // The text after the `=` may be a secret.
            let name = name.split('=').next().unwrap_or_default();
            return Err(SkipReason::Unexpected {
                key: format!("env: {name:?}"),
                expected: "a name without =, and no NUL",
            });
        }
        if program.is_empty()
            || program.contains('\0')
            || arguments.iter().any(|argument| argument.contains('\0'))
        {
            return Err(SkipReason::Unexpected {
                key: "command".into(),
                expected: "a program and arguments without NUL",
            });
        }
        let directory =
            self.directory.as_ref().map(|path| resolve_value("cwd", path, environment)).transpose()?;
        // An engine that does not belong to the system has the account of its person.
        let run_as = if environment.person.is_some() { self.run_as } else { RunAs::Lockhouse };
        // The launcher knows the home directory of the person.
        let of_home = match run_as {
            RunAs::Lockhouse => environment.clone(),
            RunAs::Person => Environment { home: None, ..environment.clone() },
        };
        let confinement = self.confinement.clone();
        Ok(ServerCommand {
            program: of_home.expand_home(&program).to_string_lossy().into_owned(),
            arguments,
            environment: variables,
            directory: directory.map(|path| of_home.expand_home(&path)),
            confinement: confinement.map(|confinement| confinement.in_home(of_home.home.as_deref())),
            requirement: None,
            run_as,
            is_single: self.is_single,
        })
    }
}

/// Reads the variables of the file that the key `envFile` names.
fn env_file_variables(
    path: &Template,
    environment: &Environment,
) -> Result<BTreeMap<String, String>, SkipReason> {
    let path = environment.expand_home(&resolve_value("envFile", path, environment)?);
    environment.use_file(&path);
    env_file::read(&path, &environment.owners).map_err(SkipReason::EnvFile)
}

impl EntryUrl {
    /// Returns the server with the deprecated transport HTTP+SSE.
    pub(super) fn over_sse(self) -> Self {
        Self { transport: HttpTransport::Sse, ..self }
    }

    fn resolve(&self, environment: &Environment) -> Result<Endpoint, SkipReason> {
        let written = resolve_value("url", &self.url, environment)?;
        if let Some(path) = written.strip_prefix(SOCKET) {
            return self.socket(Path::new(path));
        }
        let url = url::Url::parse(&written).map_err(|_| SkipReason::Url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(SkipReason::Url);
        }
        let headers = resolve_values("headers", &self.headers, environment)?;
        let is_header = |name: &str, value: &str| {
            HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok()
        };
        if let Some((name, _)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
            return Err(SkipReason::Header(name.clone()));
        }
        let authorization = match (&self.bearer_token, &self.oauth) {
            (Some(token), _) => {
                let token = resolve_value("bearer_token", token, environment)?;
                if !is_header("authorization", &token) {
                    return Err(SkipReason::Header("Authorization".into()));
                }
                Authorization::Bearer(token)
            }
            (None, Some(oauth)) => oauth.resolve(environment)?,
            (None, None) => Authorization::OnDemand,
        };
        let proxy = match &self.proxy {
            Some(proxy) => {
                let unusable =
                    || SkipReason::Unexpected { key: "proxy".into(), expected: "http(s)://HOST:PORT" };
                let proxy = resolve_value("proxy", proxy, environment)?;
                Proxy::Address(proxy_address(&proxy).ok_or_else(unusable)?)
            }
            None => Proxy::Environment,
        };
        let transport = self.transport;
        let endpoint =
            HttpEndpoint { url, transport, headers, authorization, proxy, follows_redirects: true };
        Ok(Endpoint::Http(endpoint))
    }

    /// Returns the endpoint of a server behind a Unix domain socket, which has no other key of servers with a URL.
    fn socket(&self, path: &Path) -> Result<Endpoint, SkipReason> {
        let Self { url, .. } = self;
        let is_alone = *self == Self { url: url.clone(), ..Self::default() };
        match is_alone && path.is_absolute() {
            true => Ok(Endpoint::Socket(path.to_owned())),
            false => Err(SkipReason::Unexpected {
                key: "url".into(),
                expected: "unix:/PATH, without headers, bearer_token, oauth, proxy and transport",
            }),
        }
    }
}

/// The beginning of the `url` of a server behind a Unix domain socket.
const SOCKET: &str = "unix:";

/// Parses the address of an HTTP proxy. `None` if it is not one.
pub(super) fn proxy_address(text: &str) -> Option<url::Url> {
    let address = url::Url::parse(text).ok()?;
    (matches!(address.scheme(), "http" | "https") && address.has_host()).then_some(address)
}

impl EntryOAuth {
    fn resolve(&self, environment: &Environment) -> Result<Authorization, SkipReason> {
        let optional = |key: &str, template: &Option<Template>| {
            template.as_ref().map(|template| resolve_value(key, template, environment)).transpose()
        };
        let client = OAuthClient {
            client_id: optional("oauth.client_id", &self.client_id)?,
            client_secret: optional("oauth.client_secret", &self.client_secret)?,
            private_key: optional("oauth.private_key", &self.private_key)?,
            signing_algorithm: self.signing_algorithm.clone(),
            scopes: self.scopes.clone(),
            callback_port: self.callback_port,
        };
        let kind =
            if self.client_credentials { Authorization::ClientCredentials } else { Authorization::OAuth };
        Ok(kind(client))
    }
}
