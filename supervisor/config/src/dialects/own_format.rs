//! Reads the `[servers.NAME]` tables of Lockhouse's own configuration, in which an unknown key is an error.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use lockhouse_policies::OnChange;
use lockhouse_upstream::{
    Confinement, ConfinementProfile, DirectExposure, ExchangeKind, Exposure, HttpTransport, Network,
    PREFIX_CHARS_MAX, ProtocolMinimum, RunAs, StartOptions, TextDecoding, TokenExchange, ToolScopes,
    ToolSelection, UserCredential,
};

use super::SourceFile;
use super::document_tree::{Key, Node, Table, get};
use super::fields::Fields;
use super::mcp_servers::{command, endpoint};
use super::placeholder_syntax::{PLACEHOLDER_FORMS, PlaceholderSyntax};
use crate::server_entry::{EntryCommand, EntryLimits, EntryOAuth, EntryUrl, ServerEntry};
use crate::server_keys::{self, ServerKey};
use crate::skip_reason::SkipReason;

const SECRET_PLACEHOLDER: &str = "a placeholder, since this file must not contain secrets: use ${file:/PATH}, ${env:NAME}, ${cred:NAME} or ${keyring:SERVICE/USER}";

/// A fault of a server entry, with the byte range of the faulty key or value.
pub(super) struct EntryFault {
    pub(super) at: Range<usize>,
    pub(super) label: String,
    pub(super) help: Option<String>,
}

/// Parses a `[servers.NAME]` table of Lockhouse's own configuration; `key` is `NAME` and `node` is the table. The inner
/// error is [`SkipReason::Disabled`]: the table is valid and disables the server.
///
/// # Errors
/// Returns one fault for an invalid name, one for each unknown key, and the first fault of any other kind.
pub(super) fn parse(
    key: &Key,
    node: &Node,
    file: &SourceFile<'_>,
) -> Result<Result<ServerEntry, SkipReason>, Vec<EntryFault>> {
    let name = &key.name;
    let fault = |at: &Range<usize>, label| EntryFault { at: at.clone(), label, help: None };
    let Some(table) = node.table() else {
        let help = Some(format!("write [servers.{name}] and below it command = \"...\" or url = \"...\""));
        return Err(vec![EntryFault { help, ..fault(&key.at, format!("servers.{name}: expected a table")) }]);
    };
    let mut faults = Vec::new();
    if let Err(invalid) = lockhouse_protocol::ServerName::new(name.as_str()) {
        faults.push(fault(&key.at, invalid.to_string()));
    }
    faults.extend(unknown_keys(table).map(|(unknown, known)| EntryFault {
        help: nearest(&unknown.name, &known),
        ..fault(&unknown.at, format!("servers.{name}: unknown key `{}`", unknown.name))
    }));
    match entry(Fields { table, syntax: PlaceholderSyntax::Own, file }) {
        Err(SkipReason::Disabled) if faults.is_empty() => return Ok(Err(SkipReason::Disabled)),
        Ok(entry) if faults.is_empty() => return Ok(Ok(entry)),
        Ok(_) | Err(SkipReason::Disabled) => {}
        // An unknown key is probably a misspelt `command` or `url`.
        Err(SkipReason::NoEndpoint) if !faults.is_empty() => {}
        Err(reason) => faults.push(fault(
            &locate(table, &reason).unwrap_or(key.at.clone()),
            format!("servers.{name}: {reason}"),
        )),
    }
    Err(faults)
}

/// Finds the unknown keys of a server table and its subtables. Returns each with the names of the keys that are valid
/// in its place.
fn unknown_keys(table: &Table) -> impl Iterator<Item = (&Key, Vec<&'static str>)> {
    let names = |keys: &mut dyn Iterator<Item = &'static ServerKey>| keys.map(|key| key.name).collect();
    let below = |name: &str, known: Vec<&'static str>| {
        let table = get(table, name).and_then(Node::table).map(Vec::as_slice).unwrap_or_default();
        table.iter().map(move |(key, _)| (key, known.clone()))
    };
    let known: Vec<&'static str> = names(&mut server_keys::all());
    let top = table.iter().map(move |(key, _)| (key, known.clone()));
    let of_oauth = below("oauth", names(&mut server_keys::OAUTH_KEYS.iter()));
    let of_sandbox = below("sandbox", names(&mut server_keys::SANDBOX_KEYS.iter()));
    top.chain(of_oauth).chain(of_sandbox).filter(|(key, known)| !known.contains(&key.name.as_str()))
}

pub(super) fn nearest(unknown: &str, known: &[&str]) -> Option<String> {
    let distance = |known: &&&str| strsim::damerau_levenshtein(unknown, known);
    let nearest = known.iter().min_by_key(distance).filter(|known| distance(known) <= 3);
    Some(match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known keys: {}", known.join(", ")),
    })
}

/// Returns the byte range of the value to which `reason` refers. `None` if the reason does not concern a single value.
pub(super) fn locate(table: &Table, reason: &SkipReason) -> Option<Range<usize>> {
    let (SkipReason::Unexpected { key, .. } | SkipReason::OutOfRange { key, .. }) = reason else {
        return None;
    };
    let (outer, inner) = key.split_once(": ").or(key.split_once('.')).unwrap_or((key, ""));
    let in_tables = || ["oauth", "sandbox"].iter().find_map(|below| get(get(table, below)?.table()?, outer));
    let node = get(table, outer).or_else(in_tables)?;
    let named = |(key, _): &&(Key, Node)| key.name == inner || format!("{:?}", key.name) == inner;
    let below = node.table().and_then(|table| table.iter().find(named));
    Some(below.map_or(&node.at, |(_, node)| &node.at).clone())
}

fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    let http = http(fields)?;
    let command = command(fields)?;
    let command = command
        .map(|command| {
            Ok::<_, SkipReason>(EntryCommand {
                confinement: confinement(fields)?,
                run_as: run_as(fields)?,
                is_single: is_single(fields)?,
                ..command
            })
        })
        .transpose()?;
    let misplaced = if command.is_some() { server_keys::URL_KEYS } else { server_keys::COMMAND_KEYS };
    let mut misplaced = misplaced.iter().map(|key| key.name);
    if let Some(key) = misplaced.find(|key| fields.has(key) && (command.is_some() != http.is_some())) {
        let expected =
            if command.is_some() { "a url with it, and no command" } else { "a command with it, and no url" };
        return Err(SkipReason::Unexpected { key: key.to_owned(), expected });
    }
    let mut entry = ServerEntry::new(endpoint(command, http)?);
    entry.limits = limits(fields)?;
    entry.start = start(fields)?;
    entry.tools = ToolSelection {
        only: fields.names("enabled_tools")?,
        except: fields.names("disabled_tools")?.unwrap_or_default(),
    };
    entry.decode = decode(fields)?;
    entry.exposure = exposure(fields)?;
    entry.on_change = on_change(fields)?;
    entry.is_shared = fields.flag("share")?.unwrap_or(true);
    entry.user_credential = user_credential(fields, entry.is_process())?;
    // Checked last, so that a disabled server is validated too.
    if fields.flag("enabled")? == Some(false) { Err(SkipReason::Disabled) } else { Ok(entry) }
}

pub(super) fn whole_number(fields: Fields<'_>, key: &ServerKey) -> Result<Option<u32>, SkipReason> {
    let Some(number) = fields.number(key.name)? else { return Ok(None) };
    match key.range.filter(|range| number.fract() != 0.0 || !range.has_number(number)) {
        Some(range) => Err(SkipReason::OutOfRange { key: key.name.to_owned(), range }),
        None => Ok(Some(number as u32)),
    }
}

/// Reads a string that must be one of the values that the key permits. `path` is the key's dotted name for errors, such
/// as `oauth.grant`.
fn choice<'f>(fields: Fields<'f>, key: &ServerKey, path: &str) -> Result<Option<&'f str>, SkipReason> {
    let Some(text) = fields.text(key.name)? else { return Ok(None) };
    match key.range.filter(|range| !range.has_text(text)) {
        Some(range) => Err(SkipReason::OutOfRange { key: path.to_owned(), range }),
        None => Ok(Some(text)),
    }
}

fn seconds(fields: Fields<'_>, key: &ServerKey) -> Result<Option<Duration>, SkipReason> {
    Ok(whole_number(fields, key)?.map(|seconds| Duration::from_secs(seconds.into())))
}

pub(super) fn limits(fields: Fields<'_>) -> Result<EntryLimits, SkipReason> {
    let count = |key| Ok(whole_number(fields, key)?.map(|count| count as usize));
    Ok(EntryLimits {
        start_timeout: seconds(fields, &server_keys::START_TIMEOUT)?,
        call_timeout: seconds(fields, &server_keys::CALL_TIMEOUT)?,
        call_timeout_max: seconds(fields, &server_keys::CALL_TIMEOUT_MAX)?,
        parallel_calls: count(&server_keys::PARALLEL_CALLS)?,
        queue: count(&server_keys::QUEUE)?,
        queue_timeout: seconds(fields, &server_keys::QUEUE_TIMEOUT)?,
    })
}

fn start(fields: Fields<'_>) -> Result<StartOptions, SkipReason> {
    let lazy = choice(fields, &server_keys::START, "start")? == Some("lazy");
    let legacy_handshake = choice(fields, &server_keys::PROTOCOL, "protocol")?.is_some();
    let minimum = choice(fields, &server_keys::PROTOCOL_MINIMUM, "protocol_minimum")?;
    Ok(StartOptions {
        lazy,
        legacy_handshake,
        protocol_minimum: minimum.and_then(ProtocolMinimum::parse).unwrap_or_default(),
        idle_stop: seconds(fields, &server_keys::IDLE_STOP)?,
    })
}

fn decode(fields: Fields<'_>) -> Result<TextDecoding, SkipReason> {
    Ok(choice(fields, &server_keys::DECODE, "decode")?.and_then(TextDecoding::parse).unwrap_or_default())
}

pub(super) fn exposure(fields: Fields<'_>) -> Result<Option<Exposure>, SkipReason> {
    let unexpected = |key: &str, expected| SkipReason::Unexpected { key: key.into(), expected };
    let expose = choice(fields, &server_keys::EXPOSE, "expose")?;
    let (to_code, directly) = match expose {
        Some("direct") => (false, true),
        Some("both") => (true, true),
        _ => (true, false),
    };
    let prefix = fields.text("prefix")?;
    let fits = |prefix: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        prefix.len() <= PREFIX_CHARS_MAX && prefix.chars().all(plain)
    };
    match prefix {
        Some(_) if !directly => Err(unexpected("prefix", "expose = \"direct\" or \"both\" with it")),
        Some(prefix) if !fits(prefix) => {
            Err(unexpected("prefix", "at most 32 characters of A-Z a-z 0-9 _ -, or \"\" for none"))
        }
        prefix => {
            let prefix = prefix.map(str::to_owned);
            Ok(expose.map(|_| Exposure { to_code, direct: directly.then_some(DirectExposure { prefix }) }))
        }
    }
}

pub(super) fn on_change(fields: Fields<'_>) -> Result<Option<OnChange>, SkipReason> {
    Ok(choice(fields, &server_keys::ON_CHANGE, "on_change")?.and_then(OnChange::parse))
}

pub(super) fn confinement(fields: Fields<'_>) -> Result<Option<Confinement>, SkipReason> {
    let Some(sandbox) = fields.subtable("sandbox")? else { return Ok(None) };
    let paths = |key: &str| -> Result<Vec<PathBuf>, SkipReason> {
        let paths = sandbox.names(key)?.unwrap_or_default();
        match paths.iter().all(|path| path.starts_with('/') || path.starts_with("~/")) {
            true => Ok(paths.into_iter().map(PathBuf::from).collect()),
            false => Err(SkipReason::Unexpected {
                key: format!("sandbox.{key}"),
                expected: "paths that begin with / or ~/",
            }),
        }
    };
    let profile = choice(sandbox, &server_keys::SANDBOX_PROFILE, "sandbox.profile")?;
    let profile = profile.map(|_| ConfinementProfile::Default);
    let network = match (sandbox.flag("network")?, profile) {
        (Some(true), _) => Network::All,
        (None, Some(ConfinementProfile::Default)) => Network::Internet,
        (Some(false), _) | (None, None) => Network::None,
    };
    let user_namespaces = sandbox.flag("user_namespaces")?.unwrap_or_default();
    let (read, write) = (paths("read")?, paths("write")?);
    // Requirements decide whether the kernel must enforce all of it.
    Ok(Some(Confinement { profile, read, write, network, user_namespaces, requires_full: false }))
}

fn user_credential(fields: Fields<'_>, is_process: bool) -> Result<Option<UserCredential>, SkipReason> {
    let unexpected = |expected| SkipReason::Unexpected { key: "user_secret".into(), expected };
    let is_per_user = choice(fields, &server_keys::AUTH, "auth")? == Some("per_user");
    if let Some(kind) = choice(fields, &server_keys::EXCHANGE, "exchange")? {
        let fault = |expected| Err(SkipReason::Unexpected { key: "exchange".into(), expected });
        return match (is_per_user && !is_process, fields.text("user_secret")?) {
            (true, None) => Ok(Some(UserCredential::Exchange(TokenExchange {
                kind: if kind == "token" { ExchangeKind::Token } else { ExchangeKind::Assertion },
                audience: fields.text("exchange_audience")?.map(str::to_owned),
                per_run: run_scopes(fields)?,
            }))),
            (false, _) => fault("a url and auth = \"per_user\" with it"),
            (true, Some(_)) => fault("no user_secret with it"),
        };
    }
    match fields.text("user_secret")? {
        Some(_) if !is_per_user => Err(unexpected("auth = \"per_user\" with it")),
        Some(name) if is_process && (name.is_empty() || name.contains(['=', '\0'])) => {
            Err(unexpected("the name of an environment variable"))
        }
        Some(name) if !is_process && HeaderName::try_from(name).is_err() => {
            Err(unexpected("the name of a header"))
        }
        Some(name) => Ok(Some(UserCredential::Secret(name.to_owned()))),
        None => Ok(is_per_user.then_some(UserCredential::Login)),
    }
}

/// Returns the scopes of tools, if each run has tokens of its own.
fn run_scopes(fields: Fields<'_>) -> Result<Option<ToolScopes>, SkipReason> {
    let is_per_run = choice(fields, &server_keys::TOKEN, "token")? == Some("per_run");
    let unexpected = |expected| SkipReason::Unexpected { key: "tool_scopes".into(), expected };
    let Some(written) = fields.subtable("tool_scopes")? else {
        return Ok(is_per_run.then(ToolScopes::default));
    };
    if !is_per_run {
        return Err(unexpected("token = \"per_run\" with it"));
    }
    let scopes = written.table.iter().map(|(tool, scopes)| {
        let scopes = scopes.text().ok_or_else(|| unexpected("a table of strings"))?;
        Ok((tool.name.clone(), scopes.to_owned()))
    });
    Ok(Some(ToolScopes(scopes.collect::<Result<_, SkipReason>>()?)))
}

fn run_as(fields: Fields<'_>) -> Result<RunAs, SkipReason> {
    Ok(match choice(fields, &server_keys::RUN_AS, "run_as")? {
        Some("user") => RunAs::Person,
        _ => RunAs::Lockhouse,
    })
}

/// Whether all hosts of a cluster use one process of the server.
fn is_single(fields: Fields<'_>) -> Result<bool, SkipReason> {
    if choice(fields, &server_keys::CLUSTER, "cluster")? != Some("one") {
        return Ok(false);
    }
    let has_several = fields.flag("share")? == Some(false) || fields.text("auth")? == Some("per_user");
    let expected = "with \"one\" neither share = false nor auth = \"per_user\"";
    match has_several || run_as(fields)? == RunAs::Person {
        true => Err(SkipReason::Unexpected { key: "cluster".to_owned(), expected }),
        false => Ok(true),
    }
}

fn http(fields: Fields<'_>) -> Result<Option<EntryUrl>, SkipReason> {
    let Some(url) = fields.template("url")? else { return Ok(None) };
    let transport = match choice(fields, &server_keys::TRANSPORT, "transport")? {
        Some(name) if name == HttpTransport::Sse.as_str() => HttpTransport::Sse,
        _ => HttpTransport::Streamable,
    };
    let bearer_token = secret(fields, "bearer_token", "bearer_token")?;
    let oauth = fields.subtable("oauth")?.map(oauth).transpose()?;
    if bearer_token.is_some() && oauth.is_some() {
        return Err(SkipReason::Unexpected { key: "bearer_token".into(), expected: "either this or oauth" });
    }
    let proxy = fields.template("proxy")?;
    Ok(Some(EntryUrl { url, transport, headers: fields.map("headers")?, bearer_token, oauth, proxy }))
}

/// Reads the value of a key that holds a secret. Plain text is an error: the value must contain a placeholder. `path`
/// is the key's dotted name for errors.
fn secret(
    fields: Fields<'_>,
    key: &str,
    path: &str,
) -> Result<Option<crate::placeholders::Template>, SkipReason> {
    let wrong = |expected| SkipReason::Unexpected { key: path.to_owned(), expected };
    let template = fields.template(key).map_err(|_| wrong(PLACEHOLDER_FORMS))?;
    match template {
        Some(template) if template.as_literal().is_some() => Err(wrong(SECRET_PLACEHOLDER)),
        template => Ok(template),
    }
}

fn oauth(fields: Fields<'_>) -> Result<EntryOAuth, SkipReason> {
    let wrong = |key: &str, expected| SkipReason::Unexpected { key: format!("oauth.{key}"), expected };
    let grant = choice(fields, &server_keys::GRANT, "oauth.grant")?;
    let client_credentials = grant == Some("client_credentials");
    let client_id = fields.template("client_id")?;
    let client_secret = secret(fields, "client_secret", "oauth.client_secret")?;
    let private_key = secret(fields, "private_key", "oauth.private_key")?;
    if client_secret.is_some() && private_key.is_some() {
        return Err(wrong("private_key", "either this or client_secret"));
    }
    if client_credentials && (client_id.is_none() || (client_secret.is_none() && private_key.is_none())) {
        return Err(wrong("grant", "client_id, and client_secret or private_key, with client_credentials"));
    }
    let signing_algorithm =
        choice(fields, &server_keys::SIGNING_ALGORITHM, "oauth.signing_algorithm")?.map(str::to_owned);
    let port = whole_number(fields, &server_keys::CALLBACK_PORT)?;
    Ok(EntryOAuth {
        client_credentials,
        client_id,
        client_secret,
        private_key,
        signing_algorithm,
        scopes: fields.names("scopes")?.unwrap_or_default(),
        callback_port: port.map(|port| port as u16),
    })
}
