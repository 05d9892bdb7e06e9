//! One upstream server as a file describes it, whichever file that is: nothing is looked up yet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use lockhouse_policies::OnChange;
use lockhouse_upstream::{
    Authorization, Confinement, Decode, Exposure, HttpEndpoint, OAuthClient, Reach, Referenced,
    ServerCommand, ServerDefinition, ServerLimits, Start, ToolSelection,
};

use super::env_file;
use super::left_out::LeftOut;
use super::references::{Surroundings, Template};

/// One server, with references.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) reach: EntryReach,
    pub(crate) limits: EntryLimits,
    pub(crate) start: Start,
    pub(crate) tools: ToolSelection,
    pub(crate) decode: Decode,
    pub(crate) exposure: Exposure,
    /// What becomes of tools that no person has accepted as they are, if the file says it or its kind does.
    pub(crate) on_change: Option<OnChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryReach {
    Command(EntryCommand),
    Url(EntryUrl),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntryCommand {
    pub(crate) program: Template,
    pub(crate) arguments: Vec<Template>,
    pub(crate) environment: BTreeMap<String, Template>,
    /// A file of `NAME=VALUE` lines, over which `environment` wins.
    pub(crate) env_file: Option<Template>,
    pub(crate) directory: Option<Template>,
    pub(crate) confinement: Option<Confinement>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntryUrl {
    pub(crate) url: Template,
    pub(crate) headers: BTreeMap<String, Template>,
    pub(crate) bearer_token: Option<Template>,
    pub(crate) oauth: Option<EntryOAuth>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntryOAuth {
    pub(crate) client_credentials: bool,
    pub(crate) client_id: Option<Template>,
    pub(crate) client_secret: Option<Template>,
    pub(crate) private_key: Option<Template>,
    pub(crate) signing_algorithm: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) callback_port: Option<u16>,
}

/// What the file says of them; the rest has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EntryLimits {
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) call_timeout_max: Option<Duration>,
    pub(crate) parallel_calls: Option<usize>,
    pub(crate) queue: Option<usize>,
    pub(crate) queue_timeout: Option<Duration>,
}

impl Entry {
    pub(crate) fn new(reach: EntryReach) -> Self {
        Self {
            reach,
            limits: EntryLimits::default(),
            start: Start::default(),
            tools: ToolSelection::default(),
            decode: Decode::default(),
            exposure: Exposure::default(),
            on_change: None,
        }
    }

    /// With the variables of its `envFile` among its own: our configuration has no such files.
    pub(crate) fn with_env_file(mut self, surroundings: &Surroundings) -> Result<Self, LeftOut> {
        if let EntryReach::Command(command) = &mut self.reach
            && let Some(path) = command.env_file.take()
        {
            for (name, text) in variables(&path, surroundings)? {
                command.environment.entry(name).or_insert_with(|| Template::literal(text));
            }
        }
        Ok(self)
    }

    /// What it reaches, for people: without anything that may be a secret.
    pub(crate) fn summary(&self) -> String {
        match &self.reach {
            EntryReach::Command(command) => format!("stdio {}", command.program.to_own_syntax()),
            EntryReach::Url(url) => {
                let url = url.url.as_literal().and_then(|url| url::Url::parse(url).ok());
                format!("http {}", url.as_ref().and_then(url::Url::host_str).unwrap_or("(a reference)"))
            }
        }
    }

    /// What references put into the arguments or the URL. A file or a directory is no secret.
    fn referenced(&self, surroundings: &Surroundings) -> Referenced {
        let templates: Vec<&Template> = match &self.reach {
            EntryReach::Command(command) => command.arguments.iter().collect(),
            EntryReach::Url(url) => vec![&url.url],
        };
        let values = templates.into_iter().flat_map(|template| template.referenced(surroundings));
        Referenced(values.filter(|value| !Path::new(value).exists()).collect())
    }

    /// Looks up every reference.
    pub(crate) fn resolve(
        &self,
        surroundings: &Surroundings,
        defaults: ServerLimits,
        origin: String,
    ) -> Result<ServerDefinition, LeftOut> {
        let reach = match &self.reach {
            EntryReach::Command(command) => Reach::Stdio(command.resolve(surroundings)?),
            EntryReach::Url(url) => Reach::Http(url.resolve(surroundings)?),
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
        definition.referenced = self.referenced(surroundings);
        definition.start = self.start;
        definition.tools = self.tools.clone();
        definition.decode = self.decode;
        definition.exposure = self.exposure.clone();
        definition.on_change = self.on_change.unwrap_or_default();
        Ok(definition)
    }
}

fn value(key: &str, template: &Template, surroundings: &Surroundings) -> Result<String, LeftOut> {
    let unresolved = |reason| LeftOut::Unresolved { key: key.to_owned(), reason };
    template.resolve(surroundings).map_err(unresolved)
}

fn values(
    key: &str,
    templates: &BTreeMap<String, Template>,
    surroundings: &Surroundings,
) -> Result<BTreeMap<String, String>, LeftOut> {
    let resolved = |(name, template): (&String, &Template)| {
        Ok((name.clone(), value(&format!("{key}: {name:?}"), template, surroundings)?))
    };
    templates.iter().map(resolved).collect()
}

impl EntryCommand {
    fn resolve(&self, surroundings: &Surroundings) -> Result<ServerCommand, LeftOut> {
        let program = value("command", &self.program, surroundings)?;
        let arguments = self.arguments.iter().map(|argument| value("args", argument, surroundings));
        let arguments: Vec<String> = arguments.collect::<Result<_, _>>()?;
        // An AI client's own file lists us too, and each of us would start the next.
        let is_ours = Path::new(&program).file_name().is_some_and(|name| name == "lockhouse");
        if is_ours && arguments.iter().any(|argument| argument == "serve") {
            return Err(LeftOut::Itself);
        }
        let mut environment = match &self.env_file {
            Some(path) => variables(path, surroundings)?,
            None => BTreeMap::new(),
        };
        environment.extend(values("env", &self.environment, surroundings)?);
        let is_variable = |name: &String, value: &String| {
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
        };
        if let Some((name, _)) = environment.iter().find(|(name, value)| !is_variable(name, value)) {
            // What follows the = may be a value.
            let name = name.split('=').next().unwrap_or_default();
            return Err(LeftOut::Unexpected {
                key: format!("env: {name:?}"),
                expected: "a name without =, and no NUL",
            });
        }
        if program.is_empty()
            || program.contains('\0')
            || arguments.iter().any(|argument| argument.contains('\0'))
        {
            return Err(LeftOut::Unexpected {
                key: "command".into(),
                expected: "a program and arguments without NUL",
            });
        }
        let directory = self.directory.as_ref().map(|path| value("cwd", path, surroundings)).transpose()?;
        Ok(ServerCommand {
            program: surroundings.expand_home(&program).to_string_lossy().into_owned(),
            arguments,
            environment,
            directory: directory.map(|path| surroundings.expand_home(&path)),
            confinement: self.confinement.clone().map(|confinement| at_home(confinement, surroundings)),
        })
    }
}

/// What an `envFile` has.
fn variables(path: &Template, surroundings: &Surroundings) -> Result<BTreeMap<String, String>, LeftOut> {
    let path = value("envFile", path, surroundings)?;
    env_file::read(&surroundings.expand_home(&path)).map_err(LeftOut::EnvFile)
}

fn at_home(confinement: Confinement, surroundings: &Surroundings) -> Confinement {
    let expand = |paths: Vec<PathBuf>| {
        paths.iter().map(|path| surroundings.expand_home(&path.to_string_lossy())).collect()
    };
    Confinement { read: expand(confinement.read), write: expand(confinement.write), ..confinement }
}

impl EntryUrl {
    fn resolve(&self, surroundings: &Surroundings) -> Result<HttpEndpoint, LeftOut> {
        let url = url::Url::parse(&value("url", &self.url, surroundings)?).map_err(|_| LeftOut::Url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(LeftOut::Url);
        }
        let headers = values("headers", &self.headers, surroundings)?;
        let is_header = |name: &str, value: &str| {
            HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok()
        };
        if let Some((name, _)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
            return Err(LeftOut::Header(name.clone()));
        }
        let authorization = match (&self.bearer_token, &self.oauth) {
            (Some(token), _) => {
                let token = value("bearer_token", token, surroundings)?;
                if !is_header("authorization", &token) {
                    return Err(LeftOut::Header("Authorization".into()));
                }
                Authorization::Bearer(token)
            }
            (None, Some(oauth)) => oauth.resolve(surroundings)?,
            (None, None) => Authorization::OnDemand,
        };
        Ok(HttpEndpoint { url, headers, authorization })
    }
}

impl EntryOAuth {
    fn resolve(&self, surroundings: &Surroundings) -> Result<Authorization, LeftOut> {
        let optional = |key: &str, template: &Option<Template>| {
            template.as_ref().map(|template| value(key, template, surroundings)).transpose()
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
