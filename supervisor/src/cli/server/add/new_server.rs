//! Validates the arguments of `lockhouse server add`, which are compatible with those of `claude mcp add`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use http::{HeaderName, HeaderValue};
use lockhouse_config::{SandboxChoice, looks_secret, replace_secrets, replace_secrets_in_arguments};
use lockhouse_protocol::{InvalidName, ServerName};
use lockhouse_upstream::HttpTransport;
use toml_edit::{Array, InlineTable, Table, value};
use url::Url;

use super::Arguments;

/// The upstream server that `lockhouse server add` adds.
pub(super) struct NewServer {
    pub(super) name: ServerName,
    pub(super) target: Target,
    /// The names of the variables and headers whose values were not given as arguments.
    pub(super) typed: BTreeSet<String>,
}

/// Reads the value of the variable or header with this name, which was not given as an argument.
pub(super) type ReadValue<'r> = &'r mut dyn FnMut(&str) -> std::io::Result<String>;

pub(super) enum Target {
    Stdio {
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        directory: Option<PathBuf>,
        sandbox: SandboxChoice,
    },
    Http {
        url: Url,
        transport: HttpTransport,
        /// The text of the URL, in which placeholders have replaced the secrets.
        url_text: String,
        headers: Vec<(String, String)>,
    },
}

/// Why the arguments of `lockhouse server add` are invalid. The messages never contain values of variables or headers,
/// which may be secrets.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidArguments {
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error(
        "give a command or a URL for {name}: `lockhouse server add {name} -- COMMAND ARGS...`, or `lockhouse server add {name} https://...`"
    )]
    NoTarget { name: ServerName },
    #[error("give either a URL or a command, not both: {url} and {command:?}")]
    UrlAndCommand { url: Url, command: String },
    #[error("{word:?} before -- is not a URL; write the whole command after --")]
    BeforeCommand { word: String },
    #[error(
        "MCP has deprecated the transport HTTP+SSE, which servers at such a URL use. Most of them also support http, often at /mcp instead of /sse: use that URL; if the server has nothing else, add --transport sse"
    )]
    Sse,
    #[error("{0:?} is not a transport: use stdio, http or sse")]
    Transport(String),
    #[error("{0:?} is not a valid URL: it must start with https:// or http:// and contain a host")]
    NotAUrl(String),
    #[error("{0} is a URL: omit --transport stdio")]
    UrlOverStdio(Url),
    #[error("{option} only applies to {transport} servers: omit it")]
    WrongTransport { option: &'static str, transport: &'static str },
    #[error(
        "-e {name:?} has no value: write -e KEY to type it, -e KEY=VALUE, or --env-from KEY to pass the KEY of Lockhouse's own environment"
    )]
    NoValue { name: String },
    #[error("the value of {what} cannot be read from standard input: {source}")]
    Unreadable { what: String, source: std::io::Error },
    #[error("{0:?} is not a valid variable name: use letters, digits and _, and do not start with a digit")]
    Variable(String),
    #[error("header {0} does not have the form 'Name: value' or 'Name'")]
    Header(usize),
    #[error("header {0:?} contains invalid characters")]
    HeaderCharacters(String),
    #[error("the directory of --cwd cannot be used: {0}")]
    Directory(std::io::Error),
    #[error(
        "--scope {0} is not supported: Lockhouse has one list of servers per user. Omit it, or name a project's configuration with --config"
    )]
    Scope(String),
}

impl NewServer {
    /// `read_value` reads the values that `arguments` do not have.
    pub(super) fn new(arguments: &Arguments, read_value: ReadValue<'_>) -> Result<Self, InvalidArguments> {
        let mut typed = BTreeSet::new();
        let mut read_value = |name: &str| {
            typed.insert(name.to_owned());
            read_value(name)
        };
        let name = ServerName::new(arguments.name.as_str())?;
        if let Some(scope) = arguments.scope.as_ref().filter(|scope| *scope != "user") {
            return Err(InvalidArguments::Scope(scope.clone()));
        }
        let target = match choose_transport(&name, arguments)? {
            Transport::Http(url, transport) => http(url, transport, arguments, &mut read_value)?,
            Transport::Stdio(command) => stdio(command, arguments, &mut read_value)?,
        };
        Ok(Self { name, target, typed })
    }

    /// Returns the addition as the audit log names it.
    pub(super) fn action(&self) -> String {
        match &self.target {
            Target::Stdio { sandbox: SandboxChoice::Without(reason), .. } => {
                format!("server add {} without a sandbox: {reason}", self.name)
            }
            _ => format!("server add {}", self.name),
        }
    }

    /// Returns the server as its table in `config.toml`.
    pub(super) fn to_table(&self) -> Table {
        let mut table = Table::new();
        let texts = |texts: &[(String, String)]| {
            value(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<InlineTable>())
        };
        match &self.target {
            Target::Stdio { program, arguments, environment, directory, sandbox } => {
                table["command"] = value(program);
                if !arguments.is_empty() {
                    table["args"] = value(arguments.iter().collect::<Array>());
                }
                if !environment.is_empty() {
                    table["env"] = texts(environment);
                }
                if let Some(directory) = directory {
                    table["cwd"] = value(directory.display().to_string());
                }
                sandbox.write_to(&mut table);
            }
            Target::Http { url_text, transport, headers, .. } => {
                table["url"] = value(url_text);
                if *transport != HttpTransport::default() {
                    table["transport"] = value(transport.as_str());
                }
                if !headers.is_empty() {
                    table["headers"] = texts(headers);
                }
            }
        }
        table
    }

    /// Replaces secret values by placeholders. `reference` receives the name and text of each value, and whether the
    /// value is part of a command line. It returns the placeholder for a secret, and `None` for any other value.
    pub(super) fn replace_secrets(&mut self, mut reference: impl FnMut(&str, &str, bool) -> Option<String>) {
        match &mut self.target {
            Target::Stdio { arguments, environment, .. } => {
                replace_secrets_in_arguments(arguments, &mut |name, value| reference(name, value, true));
                replace_in_values(environment, &mut |name, value| reference(name, value, false));
            }
            Target::Http { url, url_text, headers, .. } => {
                let mut in_url = |name: &str, value: &str| reference(name, value, false);
                if let Some(text) = replace_secrets("url", url.as_str(), &mut in_url, str::to_owned) {
                    *url_text = text;
                }
                replace_in_values(headers, &mut in_url);
            }
        }
    }
}

fn replace_in_values(
    values: &mut [(String, String)],
    reference: &mut impl FnMut(&str, &str) -> Option<String>,
) {
    for (name, value) in values {
        if let Some(reference) = reference(name, value) {
            *value = reference;
        }
    }
}

enum Transport<'a> {
    Http(Url, HttpTransport),
    /// A server over standard input and output: its program and the program's arguments.
    Stdio(&'a [String]),
}

fn choose_transport<'a>(
    name: &ServerName,
    arguments: &'a Arguments,
) -> Result<Transport<'a>, InvalidArguments> {
    let (before, command) = (arguments.target.as_slice(), arguments.command.as_slice());
    let first = before.first();
    let url = first.filter(|word| word.contains("://")).map(|word| parse_url(word)).transpose()?;
    match (arguments.transport.as_deref(), url) {
        (Some(other), _) if !["stdio", "http", "streamable-http", "sse"].contains(&other) => {
            Err(InvalidArguments::Transport(other.into()))
        }
        (Some("stdio"), Some(url)) => Err(InvalidArguments::UrlOverStdio(url)),
        (transport, Some(url)) => match before.get(1).or(command.first()) {
            Some(command) => Err(InvalidArguments::UrlAndCommand { url, command: command.clone() }),
            None if transport == Some("sse") => Ok(Transport::Http(url, HttpTransport::Sse)),
            None if url.path().trim_end_matches('/').ends_with("/sse") => Err(InvalidArguments::Sse),
            None => Ok(Transport::Http(url, HttpTransport::Streamable)),
        },
        (_, None) if first.or(command.first()).is_none() => {
            Err(InvalidArguments::NoTarget { name: name.clone() })
        }
        (Some("http" | "streamable-http" | "sse"), None) => {
            Err(InvalidArguments::NotAUrl(first.or(command.first()).cloned().unwrap_or_default()))
        }
        (_, None) => match (first, command.is_empty()) {
            (Some(word), false) => Err(InvalidArguments::BeforeCommand { word: word.clone() }),
            (_, true) => Ok(Transport::Stdio(before)),
            (None, false) => Ok(Transport::Stdio(command)),
        },
    }
}

fn parse_url(text: &str) -> Result<Url, InvalidArguments> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    // A URL with `@` may contain a password, so it is not printed.
    url.ok_or_else(|| {
        InvalidArguments::NotAUrl(if text.contains('@') { "the URL".into() } else { text.to_owned() })
    })
}

fn http(
    url: Url,
    transport: HttpTransport,
    arguments: &Arguments,
    read_value: ReadValue<'_>,
) -> Result<Target, InvalidArguments> {
    let wrong_transport = |option| Err(InvalidArguments::WrongTransport { option, transport: "stdio" });
    match arguments {
        Arguments { env, .. } if !env.is_empty() => return wrong_transport("-e"),
        Arguments { env_from, .. } if !env_from.is_empty() => return wrong_transport("--env-from"),
        Arguments { cwd: Some(_), .. } => return wrong_transport("--cwd"),
        _ => {}
    }
    if let Some(option) = arguments.sandbox.given() {
        return wrong_transport(option);
    }
    let header = |(index, text): (usize, &String)| {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name.trim(), value.trim().to_owned()),
            None if HeaderName::try_from(text.as_str()).is_ok() && !looks_secret("", text) => {
                // The text may be a secret nevertheless, so errors do not contain it.
                let what = || format!("header {}", index + 1);
                let value = read_value(text)
                    .map_err(|source| InvalidArguments::Unreadable { what: what(), source })?;
                (text.as_str(), value)
            }
            None => return Err(InvalidArguments::Header(index + 1)),
        };
        let valid = HeaderName::try_from(name).is_ok() && HeaderValue::try_from(&*value).is_ok();
        if valid {
            Ok((name.to_owned(), value))
        } else {
            Err(InvalidArguments::HeaderCharacters(name.into()))
        }
    };
    let headers = arguments.header.iter().enumerate().map(header).collect::<Result<_, _>>()?;
    Ok(Target::Http { url_text: url.to_string(), url, transport, headers })
}

fn stdio(
    command: &[String],
    arguments: &Arguments,
    read_value: ReadValue<'_>,
) -> Result<Target, InvalidArguments> {
    if !arguments.header.is_empty() {
        return Err(InvalidArguments::WrongTransport { option: "-H", transport: "http" });
    }
    let set_here = arguments.env.iter().map(|text| match text.split_once('=') {
        Some((name, value)) => Ok((parse_variable(name)?, value.to_owned())),
        None => {
            let name = parse_variable(text).map_err(|_| missing_value(text))?;
            let unreadable = |source| InvalidArguments::Unreadable { what: name.clone(), source };
            let value = read_value(&name).map_err(unreadable)?;
            Ok((name, value))
        }
    });
    let passed_on =
        arguments.env_from.iter().map(|name| Ok((parse_variable(name)?, format!("${{env:{name}}}"))));
    let environment = set_here.chain(passed_on).collect::<Result<_, InvalidArguments>>()?;
    // AI clients start Lockhouse from directories of their own, so a relative path is resolved here.
    let directory =
        arguments.cwd.as_ref().map(std::fs::canonicalize).transpose().map_err(InvalidArguments::Directory)?;
    let (program, rest) = command.split_first().ok_or(InvalidArguments::NotAUrl(String::new()))?;
    let sandbox = arguments.sandbox.choice();
    Ok(Target::Stdio { program: program.clone(), arguments: rest.to_vec(), environment, directory, sandbox })
}

/// Returns the error for an argument that should be `NAME=VALUE` but has no value. The error contains only the name,
/// since the other text may be a secret.
fn missing_value(text: &str) -> InvalidArguments {
    let name = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_');
    InvalidArguments::NoValue { name: name.collect() }
}

fn parse_variable(name: &str) -> Result<String, InvalidArguments> {
    let valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let valid = valid && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    if valid { Ok(name.to_owned()) } else { Err(InvalidArguments::Variable(name.to_owned())) }
}
