//! What `server add` was asked to add, checked. In the grammar of `claude mcp add`, whose lines can be pasted.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue};
use lockhouse_protocol::{InvalidName, ServerName};
use toml_edit::{Array, InlineTable, Table, value};
use url::Url;

use super::Arguments;
use crate::config::with_references;

/// A new server.
pub(super) struct Entry {
    pub(super) name: ServerName,
    pub(super) target: Target,
}

pub(super) enum Target {
    Stdio {
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        directory: Option<PathBuf>,
    },
    Http {
        url: Url,
        /// The URL, with references in place of secrets.
        written: String,
        headers: Vec<(String, String)>,
    },
}

/// What is wrong with the arguments. Values of variables and headers are in none of the messages.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mistake {
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error(
        "{name} has neither a command nor a URL: `lockhouse server add {name} -- COMMAND ARGS...`, or `lockhouse server add {name} https://...`"
    )]
    Nothing { name: ServerName },
    #[error("a server has a URL or a command, and this has both: {url} and {command:?}")]
    Both { url: Url, command: String },
    #[error("{word:?} stands before -- and is no URL; write the whole command after --")]
    BeforeCommand { word: String },
    #[error(
        "the transport sse is deprecated, and Lockhouse does not speak it. Most such servers speak http as well, often at /mcp in place of /sse: `--transport http` with that URL"
    )]
    Sse,
    #[error("{0:?} is no transport: use stdio or http")]
    Transport(String),
    #[error("{0:?} is no URL that http can reach: it begins with https:// or http:// and names a host")]
    NotAUrl(String),
    #[error("{0} is reached over http: leave out --transport stdio")]
    UrlOverStdio(Url),
    #[error("{option} is for {transport} servers, and this one is not: leave it out")]
    NotForThis { option: &'static str, transport: &'static str },
    #[error(
        "-e {name:?} has no value: write -e KEY=VALUE, or --env-from KEY for the value that KEY has when Lockhouse is started"
    )]
    NoValue { name: String },
    #[error("{0:?} cannot be the name of a variable: use letters, digits and _, and no digit first")]
    Variable(String),
    #[error("header {0} is not of the form 'Name: value'")]
    Header(usize),
    #[error("header {0:?} has characters that no header may have")]
    HeaderCharacters(String),
    #[error("the directory of --cwd cannot be used: {0}")]
    Directory(std::io::Error),
    #[error(
        "--scope {0} means nothing here: Lockhouse has one list of servers for each user. Leave it out, or name a configuration of a project with --config"
    )]
    Scope(String),
}

impl Entry {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Mistake> {
        let name = ServerName::new(arguments.name.as_str())?;
        if let Some(scope) = arguments.scope.as_ref().filter(|scope| *scope != "user") {
            return Err(Mistake::Scope(scope.clone()));
        }
        let target = match transport(&name, arguments)? {
            Transport::Http(url) => http(url, arguments)?,
            Transport::Stdio(command) => stdio(command, arguments)?,
        };
        Ok(Self { name, target })
    }

    /// As `config.toml` has it.
    pub(super) fn to_table(&self) -> Table {
        let mut table = Table::new();
        let texts = |texts: &[(String, String)]| {
            value(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<InlineTable>())
        };
        match &self.target {
            Target::Stdio { program, arguments, environment, directory } => {
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
            }
            Target::Http { written, headers, .. } => {
                table["url"] = value(written);
                if !headers.is_empty() {
                    table["headers"] = texts(headers);
                }
            }
        }
        table
    }

    /// Puts references in place of the secrets. `reference` is offered each value with its name, and whether it is part of a
    /// command line.
    pub(super) fn refer(&mut self, mut reference: impl FnMut(&str, &str, bool) -> Option<String>) {
        match &mut self.target {
            Target::Stdio { arguments, environment, .. } => {
                refer_in_arguments(arguments, &mut |name, value| reference(name, value, true));
                refer_in_values(environment, &mut |name, value| reference(name, value, false));
            }
            Target::Http { url, written, headers } => {
                let mut in_url = |name: &str, value: &str| reference(name, value, false);
                if let Some(text) = with_references("url", url.as_str(), &mut in_url, str::to_owned) {
                    *written = text;
                }
                refer_in_values(headers, &mut in_url);
            }
        }
    }
}

fn refer_in_values(
    values: &mut [(String, String)],
    reference: &mut impl FnMut(&str, &str) -> Option<String>,
) {
    for (name, value) in values {
        if let Some(reference) = reference(name, value) {
            *value = reference;
        }
    }
}

fn refer_in_arguments(arguments: &mut [String], reference: &mut impl FnMut(&str, &str) -> Option<String>) {
    let mut option = String::new();
    for argument in arguments {
        let next = if argument.starts_with('-') { argument.trim_start_matches('-') } else { "" }.to_owned();
        if let Some(text) = with_references(&option, argument, reference, str::to_owned) {
            *argument = text;
        }
        option = next;
    }
}

enum Transport<'a> {
    Http(Url),
    /// A program and its arguments.
    Stdio(&'a [String]),
}

fn transport<'a>(name: &ServerName, arguments: &'a Arguments) -> Result<Transport<'a>, Mistake> {
    let (before, command) = (arguments.target.as_slice(), arguments.command.as_slice());
    let first = before.first();
    let url = first.filter(|word| word.contains("://")).map(|word| url(word)).transpose()?;
    match (arguments.transport.as_deref(), url) {
        (Some("sse"), _) => Err(Mistake::Sse),
        (Some(other), _) if !["stdio", "http", "streamable-http"].contains(&other) => {
            Err(Mistake::Transport(other.into()))
        }
        (Some("stdio"), Some(url)) => Err(Mistake::UrlOverStdio(url)),
        (_, Some(url)) => match before.get(1).or(command.first()) {
            Some(command) => Err(Mistake::Both { url, command: command.clone() }),
            None if url.path().trim_end_matches('/').ends_with("/sse") => Err(Mistake::Sse),
            None => Ok(Transport::Http(url)),
        },
        (_, None) if first.or(command.first()).is_none() => Err(Mistake::Nothing { name: name.clone() }),
        (Some("http" | "streamable-http"), None) => {
            Err(Mistake::NotAUrl(first.or(command.first()).cloned().unwrap_or_default()))
        }
        (_, None) => match (first, command.is_empty()) {
            (Some(word), false) => Err(Mistake::BeforeCommand { word: word.clone() }),
            (_, true) => Ok(Transport::Stdio(before)),
            (None, false) => Ok(Transport::Stdio(command)),
        },
    }
}

fn url(text: &str) -> Result<Url, Mistake> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    // What may be a password stays out of the message.
    url.ok_or_else(|| Mistake::NotAUrl(if text.contains('@') { "the URL".into() } else { text.to_owned() }))
}

fn http(url: Url, arguments: &Arguments) -> Result<Target, Mistake> {
    let not_for_this = |option| Err(Mistake::NotForThis { option, transport: "stdio" });
    match arguments {
        Arguments { env, .. } if !env.is_empty() => return not_for_this("-e"),
        Arguments { env_from, .. } if !env_from.is_empty() => return not_for_this("--env-from"),
        Arguments { cwd: Some(_), .. } => return not_for_this("--cwd"),
        _ => {}
    }
    let header = |(index, text): (usize, &String)| {
        let (name, value) = text.split_once(':').ok_or(Mistake::Header(index + 1))?;
        let (name, value) = (name.trim(), value.trim());
        let valid = HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok();
        if valid {
            Ok((name.to_owned(), value.to_owned()))
        } else {
            Err(Mistake::HeaderCharacters(name.into()))
        }
    };
    let headers = arguments.header.iter().enumerate().map(header).collect::<Result<_, _>>()?;
    Ok(Target::Http { written: url.to_string(), url, headers })
}

fn stdio(command: &[String], arguments: &Arguments) -> Result<Target, Mistake> {
    if !arguments.header.is_empty() {
        return Err(Mistake::NotForThis { option: "-H", transport: "http" });
    }
    let given = arguments.env.iter().map(|text| {
        let (name, value) = text.split_once('=').ok_or_else(|| no_value(text))?;
        Ok((variable(name)?, value.to_owned()))
    });
    let referred = arguments.env_from.iter().map(|name| Ok((variable(name)?, format!("${{env:{name}}}"))));
    let environment = given.chain(referred).collect::<Result<_, Mistake>>()?;
    // Lockhouse is started by AI clients, from directories of their own.
    let directory =
        arguments.cwd.as_ref().map(std::fs::canonicalize).transpose().map_err(Mistake::Directory)?;
    let (program, rest) = command.split_first().ok_or(Mistake::NotAUrl(String::new()))?;
    Ok(Target::Stdio { program: program.clone(), arguments: rest.to_vec(), environment, directory })
}

/// What follows a name may be a secret.
fn no_value(text: &str) -> Mistake {
    let name = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_');
    Mistake::NoValue { name: name.collect() }
}

fn variable(name: &str) -> Result<String, Mistake> {
    let valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let valid = valid && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    if valid { Ok(name.to_owned()) } else { Err(Mistake::Variable(name.to_owned())) }
}
