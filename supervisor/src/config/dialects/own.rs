//! `[servers.NAME]`: our own configuration, in which a key that is not known is a mistake.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use lockhouse_policies::OnChange;
use lockhouse_upstream::{Confinement, Decode, Directly, Exposure, PREFIX_CHARS_MAX, Start, ToolSelection};

use super::Place;
use super::fields::Fields;
use super::mcp_servers::{command, reach};
use super::syntax::{OWN_REFERENCES, Syntax};
use super::tree::{Key, Node, Table, get};
use crate::config::entry::{Entry, EntryCommand, EntryLimits, EntryOAuth, EntryUrl};
use crate::config::left_out::LeftOut;
use crate::config::server_keys::{self, ServerKey};

const REFERENCE: &str = "a reference: a secret is not written down here; use ${file:/PATH}, ${env:NAME}, ${cred:NAME} or ${keyring:SERVICE/USER}";

/// What is wrong with a server, and where.
pub(super) struct Fault {
    pub(super) at: Range<usize>,
    pub(super) label: String,
    pub(super) help: Option<String>,
}

/// A server of our own configuration: all of its unknown keys, and the first fault besides.
pub(super) fn checked(
    key: &Key,
    node: &Node,
    place: &Place<'_>,
) -> Result<Result<Entry, LeftOut>, Vec<Fault>> {
    let name = &key.name;
    let fault = |at: &Range<usize>, label| Fault { at: at.clone(), label, help: None };
    let Some(table) = node.table() else {
        let help = Some(format!("write [servers.{name}] and below it command = \"...\" or url = \"...\""));
        return Err(vec![Fault { help, ..fault(&key.at, format!("servers.{name}: expected a table")) }]);
    };
    let mut faults = Vec::new();
    if let Err(invalid) = lockhouse_protocol::ServerName::new(name.as_str()) {
        faults.push(fault(&key.at, invalid.to_string()));
    }
    faults.extend(unknown(table).map(|(unknown, known)| Fault {
        help: nearest(&unknown.name, &known),
        ..fault(&unknown.at, format!("servers.{name}: unknown key `{}`", unknown.name))
    }));
    match entry(Fields { table, syntax: Syntax::Own, place }) {
        Err(LeftOut::Disabled) if faults.is_empty() => return Ok(Err(LeftOut::Disabled)),
        Ok(entry) if faults.is_empty() => return Ok(Ok(entry)),
        Ok(_) | Err(LeftOut::Disabled) => {}
        // It is there, under a name that is not ours.
        Err(LeftOut::NoReach) if !faults.is_empty() => {}
        Err(reason) => faults.push(fault(
            &located(table, &reason).unwrap_or(key.at.clone()),
            format!("servers.{name}: {reason}"),
        )),
    }
    Err(faults)
}

/// Keys that are none of ours, each with those that are.
fn unknown(table: &Table) -> impl Iterator<Item = (&Key, Vec<&'static str>)> {
    let names = |keys: &mut dyn Iterator<Item = &'static ServerKey>| keys.map(|key| key.name).collect();
    let below = |name: &str, known: Vec<&'static str>| {
        let table = get(table, name).and_then(Node::table).map(Vec::as_slice).unwrap_or_default();
        table.iter().map(move |(key, _)| (key, known.clone()))
    };
    let known: Vec<&'static str> = names(&mut server_keys::all());
    let top = table.iter().map(move |(key, _)| (key, known.clone()));
    let of_oauth = below("oauth", names(&mut server_keys::OF_OAUTH.iter()));
    let of_sandbox = below("sandbox", names(&mut server_keys::OF_SANDBOXES.iter()));
    top.chain(of_oauth).chain(of_sandbox).filter(|(key, known)| !known.contains(&key.name.as_str()))
}

fn nearest(unknown: &str, known: &[&str]) -> Option<String> {
    let distance = |known: &&&str| strsim::damerau_levenshtein(unknown, known);
    let nearest = known.iter().min_by_key(distance).filter(|known| distance(known) <= 3);
    Some(match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known keys: {}", known.join(", ")),
    })
}

/// Where the value is that a reason speaks of.
fn located(table: &Table, reason: &LeftOut) -> Option<Range<usize>> {
    let (LeftOut::Unexpected { key, .. } | LeftOut::OutOfRange { key, .. }) = reason else { return None };
    let (outer, inner) = key.split_once(": ").or(key.split_once('.')).unwrap_or((key, ""));
    let in_tables = || ["oauth", "sandbox"].iter().find_map(|below| get(get(table, below)?.table()?, outer));
    let node = get(table, outer).or_else(in_tables)?;
    let named = |(key, _): &&(Key, Node)| key.name == inner || format!("{:?}", key.name) == inner;
    let below = node.table().and_then(|table| table.iter().find(named));
    Some(below.map_or(&node.at, |(_, node)| &node.at).clone())
}

fn entry(fields: Fields<'_>) -> Result<Entry, LeftOut> {
    let http = http(fields)?;
    let command = command(fields)?;
    let command = command
        .map(|command| Ok::<_, LeftOut>(EntryCommand { confinement: confinement(fields)?, ..command }))
        .transpose()?;
    let strays = if command.is_some() { server_keys::OF_URLS } else { server_keys::OF_COMMANDS };
    let mut strays = strays.iter().map(|key| key.name);
    if let Some(stray) = strays.find(|stray| fields.has(stray) && (command.is_some() != http.is_some())) {
        let expected =
            if command.is_some() { "a url with it, and no command" } else { "a command with it, and no url" };
        return Err(LeftOut::Unexpected { key: stray.to_owned(), expected });
    }
    let mut entry = Entry::new(reach(command, http)?);
    entry.limits = limits(fields)?;
    entry.start = start(fields)?;
    entry.tools = ToolSelection {
        only: fields.names("enabled_tools")?,
        except: fields.names("disabled_tools")?.unwrap_or_default(),
    };
    entry.decode = decode(fields)?;
    entry.exposure = exposure(fields)?;
    entry.on_change = on_change(fields)?;
    // Last: a server that is switched off is checked all the same.
    if fields.flag("enabled")? == Some(false) { Err(LeftOut::Disabled) } else { Ok(entry) }
}

fn whole(fields: Fields<'_>, key: &ServerKey) -> Result<Option<u32>, LeftOut> {
    let Some(number) = fields.number(key.name)? else { return Ok(None) };
    match key.range.filter(|range| number.fract() != 0.0 || !range.has_number(number)) {
        Some(range) => Err(LeftOut::OutOfRange { key: key.name.to_owned(), range }),
        None => Ok(Some(number as u32)),
    }
}

/// One of the texts that a key can have; `path` names it in a fault.
fn choice<'f>(fields: Fields<'f>, key: &ServerKey, path: &str) -> Result<Option<&'f str>, LeftOut> {
    let Some(text) = fields.text(key.name)? else { return Ok(None) };
    match key.range.filter(|range| !range.has_text(text)) {
        Some(range) => Err(LeftOut::OutOfRange { key: path.to_owned(), range }),
        None => Ok(Some(text)),
    }
}

fn seconds(fields: Fields<'_>, key: &ServerKey) -> Result<Option<Duration>, LeftOut> {
    Ok(whole(fields, key)?.map(|seconds| Duration::from_secs(seconds.into())))
}

fn limits(fields: Fields<'_>) -> Result<EntryLimits, LeftOut> {
    let count = |key| Ok(whole(fields, key)?.map(|count| count as usize));
    Ok(EntryLimits {
        start_timeout: seconds(fields, &server_keys::START_TIMEOUT)?,
        call_timeout: seconds(fields, &server_keys::CALL_TIMEOUT)?,
        call_timeout_max: seconds(fields, &server_keys::CALL_TIMEOUT_MAX)?,
        parallel_calls: count(&server_keys::PARALLEL_CALLS)?,
        queue: count(&server_keys::QUEUE)?,
        queue_timeout: seconds(fields, &server_keys::QUEUE_TIMEOUT)?,
    })
}

fn start(fields: Fields<'_>) -> Result<Start, LeftOut> {
    let lazy = choice(fields, &server_keys::START, "start")? == Some("lazy");
    Ok(Start { lazy, idle_stop: seconds(fields, &server_keys::IDLE_STOP)? })
}

fn decode(fields: Fields<'_>) -> Result<Decode, LeftOut> {
    let is_json = choice(fields, &server_keys::DECODE, "decode")? == Some("json");
    Ok(if is_json { Decode::Json } else { Decode::Text })
}

fn exposure(fields: Fields<'_>) -> Result<Exposure, LeftOut> {
    let unexpected = |key: &str, expected| LeftOut::Unexpected { key: key.into(), expected };
    let (to_code, directly) = match choice(fields, &server_keys::EXPOSE, "expose")? {
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
            Ok(Exposure { to_code, directly: directly.then_some(Directly { prefix }) })
        }
    }
}

fn on_change(fields: Fields<'_>) -> Result<Option<OnChange>, LeftOut> {
    Ok(choice(fields, &server_keys::ON_CHANGE, "on_change")?.and_then(OnChange::named))
}

fn confinement(fields: Fields<'_>) -> Result<Option<Confinement>, LeftOut> {
    let Some(sandbox) = fields.below("sandbox")? else { return Ok(None) };
    let paths = |key: &str| -> Result<Vec<PathBuf>, LeftOut> {
        let paths = sandbox.names(key)?.unwrap_or_default();
        match paths.iter().all(|path| path.starts_with('/') || path.starts_with("~/")) {
            true => Ok(paths.into_iter().map(PathBuf::from).collect()),
            false => Err(LeftOut::Unexpected {
                key: format!("sandbox.{key}"),
                expected: "paths that begin with / or ~/",
            }),
        }
    };
    let network = sandbox.flag("network")?.unwrap_or(false);
    Ok(Some(Confinement { read: paths("read")?, write: paths("write")?, network }))
}

fn http(fields: Fields<'_>) -> Result<Option<EntryUrl>, LeftOut> {
    let Some(url) = fields.template("url")? else { return Ok(None) };
    let bearer_token = secret(fields, "bearer_token", "bearer_token")?;
    let oauth = fields.below("oauth")?.map(oauth).transpose()?;
    if bearer_token.is_some() && oauth.is_some() {
        return Err(LeftOut::Unexpected { key: "bearer_token".into(), expected: "either this or oauth" });
    }
    Ok(Some(EntryUrl { url, headers: fields.map("headers")?, bearer_token, oauth }))
}

/// A value that is nothing but a secret.
fn secret(
    fields: Fields<'_>,
    key: &str,
    shown: &str,
) -> Result<Option<crate::config::references::Template>, LeftOut> {
    let wrong = |expected| LeftOut::Unexpected { key: shown.to_owned(), expected };
    let template = fields.template(key).map_err(|_| wrong(OWN_REFERENCES))?;
    match template {
        Some(template) if template.as_literal().is_some() => Err(wrong(REFERENCE)),
        template => Ok(template),
    }
}

fn oauth(fields: Fields<'_>) -> Result<EntryOAuth, LeftOut> {
    let wrong = |key: &str, expected| LeftOut::Unexpected { key: format!("oauth.{key}"), expected };
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
    let port = whole(fields, &server_keys::CALLBACK_PORT)?;
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
