//! Parses a requirements file. An unknown key is an error, since a misspelt requirement would not be enforced.

use std::ops::Range;
use std::path::PathBuf;

use clap::ValueEnum;
use lockhouse_audit::digest;
use lockhouse_policies::{Diagnostics, Source, SourceLocation};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};
use url::Url;

use super::identity::{Identity, ServerMatcher};
use super::reader::Reader;
use super::required_tables;
use super::{RequiredPolicy, Requirement};
use crate::dialects::{self, Author, ListedServer, OwnServers};
use crate::files::ExposeMode;
use crate::files_table::FilesTable;
use crate::placeholders::Environment;
use crate::server_entry::proxy_address;

/// An entry of `[[approved]]` in a requirements file: a server name, and the program or URL that the server must have.
#[derive(Debug)]
pub(super) struct ApprovedServer {
    pub(super) place: SourceLocation,
    pub(super) name: ServerName,
    pub(super) matcher: ServerMatcher,
}

/// An entry of `[[denied]]` in a requirements file. It denies servers that match all of its keys.
#[derive(Debug)]
pub(super) struct DeniedServer {
    pub(super) place: SourceLocation,
    /// The name of the denied server; with a trailing `*`, every name that begins with the text before it. `None`
    /// denies any name.
    name: Option<String>,
    matcher: Option<ServerMatcher>,
}

impl DeniedServer {
    /// Whether the entry denies by URL.
    pub(super) fn has_url(&self) -> bool {
        matches!(self.matcher, Some(ServerMatcher::Address { .. }))
    }

    pub(super) fn matches(
        &self,
        name: &ServerName,
        definition: &ServerDefinition,
        identity: &Identity,
    ) -> bool {
        // A name that only looks different is not another one.
        let loose = |name: &str| name.to_ascii_lowercase().replace('-', "_");
        let has_name = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => loose(name.as_str()).starts_with(&loose(start)),
            None => loose(name.as_str()) == loose(pattern),
        };
        self.name.as_ref().is_none_or(has_name)
            && self.matcher.as_ref().is_none_or(|matcher| matcher.denies(definition, identity))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The path of a policy that is evaluated together with every user's policy.
    policy: Option<Spanned<PathBuf>>,
    /// Why nothing may run.
    stop: Option<Spanned<String>>,
    /// Who can use each server that this file does not fix.
    expose: Option<Spanned<String>>,
    /// `system`: no process of a person has an engine.
    engine: Option<Spanned<String>>,
    /// `required`: the host must provide every protection.
    sandbox: Option<Spanned<String>>,
    /// The only servers that may be used. This field only makes the key valid; [`dialects::read_own`] reads the
    /// table, since its diagnostics show no secrets.
    servers: Option<IgnoredAny>,
    approved: Option<Vec<Spanned<ServerRule>>>,
    #[serde(default)]
    denied: Vec<Spanned<ServerRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerRule {
    name: Option<Spanned<String>>,
    command: Option<Spanned<PathBuf>>,
    #[serde(default)]
    args: Vec<String>,
    env: Option<Vec<String>>,
    cwd: Option<Spanned<PathBuf>>,
    sha256: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    proxy: Option<Spanned<String>>,
}

/// The maximum number of characters of the reason of `stop`, which each client reads.
/// Bound: configuration and policy.
const STOP_CHARS_MAX: usize = 500;

/// Parses and validates a requirements file.
///
/// # Errors
/// Returns all faults of the file. If a fault prevents reading the file, returns only this fault.
pub(super) fn parse(source: &Source, environment: &Environment) -> Result<Requirement, Diagnostics> {
    let mut reader = Reader { source, faults: Vec::new() };
    let unreadable = |error: toml::de::Error| {
        // The parser may quote a value of a server's environment.
        let message = if reader.may_hold_secrets(error.span()) { "this part of it" } else { error.message() };
        Diagnostics::from(reader.diagnostic(error.span(), message))
    };
    let mut root = DeTable::parse(&source.text).map_err(unreadable)?;
    let tables = required_tables::take_tables(root.get_mut());
    let document = Document::deserialize(Deserializer::from(root.clone())).map_err(unreadable)?;
    let approved =
        document.approved.map(|entries| entries.iter().filter_map(|entry| reader.approved(entry)).collect());
    let denied = document.denied.iter().filter_map(|entry| reader.denied(entry)).collect();
    if let Some(path) = document.policy.as_ref().filter(|path| !path.get_ref().is_absolute()) {
        reader.add_fault(path.span(), "expected an absolute path");
    }
    let mut tables = required_tables::parse(tables, &mut reader);
    let stop = document.stop.and_then(|stop| reader.stop(stop));
    let expose = document.expose.and_then(|expose| reader.expose(&expose));
    document.engine.iter().for_each(|engine| reader.engine(engine));
    if let Some(sandbox) = &document.sandbox {
        reader.require_sandbox(sandbox, &mut tables);
    }
    let servers = dialects::read_own(source, root.get_ref(), environment, Author::Administrator);
    let servers = servers.unwrap_or_else(|faults| {
        reader.faults.extend(faults.0);
        OwnServers::default()
    });
    if !reader.faults.is_empty() {
        return Err(Diagnostics(reader.faults));
    }
    let OwnServers { upstreams, files, every } = servers;
    let files = Some(files).filter(|files| *files != FilesTable::default());
    // A file with only the tables `files` and `*` does not fix the servers.
    let fixes_servers = !upstreams.is_empty() || (files.is_none() && every.is_none());
    let policy = document.policy.map(|path| RequiredPolicy {
        missing: fault_in(source, Some(path.span()), "there is no such file"),
        path: path.into_inner(),
    });
    Ok(Requirement {
        path: source.path.clone(),
        digest: digest::sha256_hex(&source.text),
        fixed: document.servers.filter(|_| fixes_servers).map(|_| upstreams),
        approved,
        denied,
        policy,
        stop,
        has_system_engine: document.engine.is_some(),
        requires_sandbox: document.sandbox.is_some(),
        expose,
        files,
        every,
        tables,
    })
}

/// Resolves the placeholders of a server in a requirements file and validates its definition; `limits` are its
/// defaults. If this fails, logs a warning and returns `None`.
pub(super) fn resolve(
    listed: &ListedServer,
    path: &str,
    limits: ServerLimits,
    environment: &Environment,
) -> Option<(ServerName, ServerDefinition)> {
    let ListedServer { name, line, entry, .. } = listed;
    let origin = format!("{path}:{line}");
    let definition = match entry {
        Ok(entry) => entry.resolve(environment, limits, origin.clone()),
        Err(reason) => Err(reason.clone()),
    };
    let warn = |reason| tracing::warn!("{origin}: server {name:?} is left out: {reason}");
    Some((ServerName::new(name.as_str()).ok()?, definition.map_err(warn).ok()?))
}

/// Creates one diagnostic about a requirements file.
fn fault_in(source: &Source, span: Option<Range<usize>>, label: &str) -> Diagnostics {
    Reader { source, faults: Vec::new() }.diagnostic(span, label).into()
}

impl Reader<'_> {
    /// Returns the reason for which nothing may run, on one line.
    fn stop(&mut self, reason: Spanned<String>) -> Option<String> {
        let span = reason.span();
        let reason = reason.into_inner().split_whitespace().collect::<Vec<_>>().join(" ");
        let is_usable = !reason.is_empty()
            && reason.chars().count() <= STOP_CHARS_MAX
            && !reason.chars().any(char::is_control);
        if !is_usable {
            let label = format!("expected the reason, which clients read: 1 to {STOP_CHARS_MAX} characters");
            self.add_fault(span, &label);
            return None;
        }
        Some(reason)
    }

    fn expose(&mut self, expose: &Spanned<String>) -> Option<ExposeMode> {
        let mode = ExposeMode::from_str(expose.get_ref(), false).ok();
        if mode.is_none() {
            self.add_fault(expose.span(), "expected \"code\", \"direct\" or \"both\"");
        }
        mode
    }

    /// Adds the key of the configuration that has the same effect to `tables`.
    fn require_sandbox(&mut self, sandbox: &Spanned<String>, tables: &mut toml::Table) {
        if sandbox.get_ref() != "required" {
            self.add_fault(sandbox.span(), "expected \"required\", or no such key");
            return;
        }
        let pool = tables.entry("pool").or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let Some(pool) = pool.as_table_mut() {
            pool.insert("require_full".to_owned(), true.into());
        }
    }

    fn approved(&mut self, entry: &Spanned<ServerRule>) -> Option<ApprovedServer> {
        let matcher = self.matcher(entry)?;
        let place = self.place(entry.span().start);
        let (Some(name), Some(matcher)) = (&entry.get_ref().name, matcher) else {
            self.add_fault(entry.span(), "an approved server has a name, and a command or a url");
            return None;
        };
        if matches!(matcher, ServerMatcher::Program { path: None, .. }) {
            self.add_fault(entry.span(), "an approved server has a command or a url");
            return None;
        }
        match ServerName::new(name.get_ref().as_str()) {
            Ok(name) => Some(ApprovedServer { place, name, matcher }),
            Err(invalid) => {
                self.add_fault(name.span(), &invalid.to_string());
                None
            }
        }
    }

    fn denied(&mut self, entry: &Spanned<ServerRule>) -> Option<DeniedServer> {
        let ServerRule { env, proxy, .. } = entry.get_ref();
        if env.as_ref().is_some_and(Vec::is_empty) {
            self.add_fault(
                entry.span(),
                "the env of a denied server names variables: a server that sets one of them is denied",
            );
            return None;
        }
        if let Some(proxy) = proxy {
            self.add_fault(proxy.span(), "only an approved server has a proxy");
            return None;
        }
        let matcher = self.matcher(entry)?;
        let name = entry.get_ref().name.as_ref().map(|name| name.get_ref().clone());
        if name.is_none() && matcher.is_none() {
            self.add_fault(entry.span(), "a denied server has a name, a command, a sha256 or a url");
            return None;
        }
        Some(DeniedServer { place: self.place(entry.span().start), name, matcher })
    }

    /// Parses the pattern in an entry of `[[approved]]` or `[[denied]]`. Returns `None` if the pattern is invalid, and
    /// `Some(None)` if the entry has no pattern.
    fn matcher(&mut self, entry: &Spanned<ServerRule>) -> Option<Option<ServerMatcher>> {
        let ServerRule { command, args, env, cwd, sha256, url, proxy, .. } = entry.get_ref();
        let has_program_keys =
            command.is_some() || sha256.is_some() || !args.is_empty() || env.is_some() || cwd.is_some();
        match url {
            Some(url) if has_program_keys => {
                self.add_fault(url.span(), "a server has a command or a url, not both");
                None
            }
            Some(url) => self.address(url, proxy.as_ref()).map(Some),
            None if proxy.is_some() => {
                self.add_fault(entry.span(), "a proxy is for a server with a url");
                None
            }
            None if !has_program_keys => Some(None),
            None => self.program(entry).map(Some),
        }
    }

    fn program(&mut self, entry: &Spanned<ServerRule>) -> Option<ServerMatcher> {
        let ServerRule { command, args, env, cwd, sha256, .. } = entry.get_ref();
        if let Some(command) = command.as_ref().filter(|command| !command.get_ref().is_absolute()) {
            self.add_fault(command.span(), "expected an absolute path: a name could stand for any file");
            return None;
        }
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.get_ref().is_absolute()) {
            self.add_fault(cwd.span(), "expected an absolute path: it is compared with the server's `cwd`");
            return None;
        }
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(sha256) = sha256.as_ref().filter(|sha256| !is_digest(sha256.get_ref())) {
            self.add_fault(sha256.span(), "expected 64 hexadecimal digits, as sha256sum prints them");
            return None;
        }
        Some(ServerMatcher::Program {
            path: command.as_ref().map(|command| command.get_ref().clone()),
            arguments: args.clone(),
            variables: env.clone(),
            directory: cwd.as_ref().map(|cwd| cwd.get_ref().clone()),
            sha256: sha256.as_ref().map(|sha256| sha256.get_ref().to_ascii_lowercase()),
        })
    }

    fn address(&mut self, text: &Spanned<String>, proxy: Option<&Spanned<String>>) -> Option<ServerMatcher> {
        let (stem, and_below) = match text.get_ref().strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text.get_ref().as_str(), false),
        };
        let url = Url::parse(stem).ok().filter(|url| {
            let plain = url.query().is_none() && url.fragment().is_none();
            // A `*` within the host name would match hosts of other owners.
            let ends_in_path = !and_below || stem.splitn(4, '/').count() == 4;
            matches!(url.scheme(), "http" | "https") && url.has_host() && plain && ends_in_path
        });
        if url.is_none() {
            self.add_fault(
                text.span(),
                "expected http(s)://HOST/PATH, with or without * at the end of the path",
            );
        }
        let address = proxy.and_then(|proxy| proxy_address(proxy.get_ref()));
        if let Some(proxy) = proxy.filter(|_| address.is_none()) {
            self.add_fault(proxy.span(), "expected http(s)://HOST:PORT");
            return None;
        }
        url.map(|url| ServerMatcher::Address { url, and_below, proxy: address })
    }
}
