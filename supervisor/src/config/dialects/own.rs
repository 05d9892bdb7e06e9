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

const KEYS: [&str; 25] = [
    "command",
    "args",
    "env",
    "cwd",
    "sandbox",
    "url",
    "headers",
    "bearer_token",
    "oauth",
    "enabled",
    "start",
    "idle_stop_seconds",
    "start_timeout_seconds",
    "call_timeout_seconds",
    "call_timeout_max_seconds",
    "parallel_calls",
    "queue",
    "queue_timeout_seconds",
    "enabled_tools",
    "disabled_tools",
    "decode",
    "expose",
    "prefix",
    "on_change",
    "description",
];
const OAUTH_KEYS: [&str; 7] =
    ["grant", "client_id", "client_secret", "private_key", "signing_algorithm", "scopes", "callback_port"];
const SANDBOX_KEYS: [&str; 3] = ["read", "write", "network"];
const OF_COMMANDS: [&str; 4] = ["args", "env", "cwd", "sandbox"];
const OF_URLS: [&str; 3] = ["headers", "bearer_token", "oauth"];
const ALGORITHMS: [&str; 5] = ["RS256", "RS384", "RS512", "ES256", "ES384"];
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
        help: nearest(&unknown.name, known),
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
fn unknown(table: &Table) -> impl Iterator<Item = (&Key, &'static [&'static str])> {
    let below = |name: &str, known: &'static [&'static str]| {
        let table = get(table, name).and_then(Node::table).map(Vec::as_slice).unwrap_or_default();
        table.iter().map(move |(key, _)| (key, known))
    };
    let top = table.iter().map(|(key, _)| (key, &KEYS as &'static [&'static str]));
    let all = top.chain(below("oauth", &OAUTH_KEYS)).chain(below("sandbox", &SANDBOX_KEYS));
    all.filter(|(key, known)| !known.contains(&key.name.as_str()))
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
    let LeftOut::Unexpected { key, .. } = reason else { return None };
    let (outer, inner) = key.split_once(": ").or(key.split_once('.')).unwrap_or((key, ""));
    let node = get(table, outer)?;
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
    let strays: &[&str] = if command.is_some() { &OF_URLS } else { &OF_COMMANDS };
    if let Some(stray) =
        strays.iter().find(|stray| fields.has(stray) && (command.is_some() != http.is_some()))
    {
        let expected =
            if command.is_some() { "a url with it, and no command" } else { "a command with it, and no url" };
        return Err(LeftOut::Unexpected { key: (*stray).to_owned(), expected });
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

fn within(
    fields: Fields<'_>,
    key: &str,
    range: (u32, u32),
    expected: &'static str,
) -> Result<Option<u32>, LeftOut> {
    let fits =
        |number: &f64| number.fract() == 0.0 && (f64::from(range.0)..=f64::from(range.1)).contains(number);
    match fields.number(key)? {
        None => Ok(None),
        Some(number) if fits(&number) => Ok(Some(number as u32)),
        Some(_) => Err(LeftOut::Unexpected { key: key.to_owned(), expected }),
    }
}

fn seconds(fields: Fields<'_>, key: &str) -> Result<Option<Duration>, LeftOut> {
    let seconds = within(fields, key, (1, 86_400), "1 to 86400")?;
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.into())))
}

fn limits(fields: Fields<'_>) -> Result<EntryLimits, LeftOut> {
    let count = |key, range, expected| Ok(within(fields, key, range, expected)?.map(|count| count as usize));
    Ok(EntryLimits {
        start_timeout: seconds(fields, "start_timeout_seconds")?,
        call_timeout: seconds(fields, "call_timeout_seconds")?,
        call_timeout_max: seconds(fields, "call_timeout_max_seconds")?,
        parallel_calls: count("parallel_calls", (1, 1_024), "1 to 1024")?,
        queue: count("queue", (0, 65_536), "0 to 65536")?,
        queue_timeout: seconds(fields, "queue_timeout_seconds")?,
    })
}

fn start(fields: Fields<'_>) -> Result<Start, LeftOut> {
    let lazy = match fields.text("start")? {
        None | Some("eager") => false,
        Some("lazy") => true,
        Some(_) => {
            return Err(LeftOut::Unexpected { key: "start".into(), expected: "\"eager\" or \"lazy\"" });
        }
    };
    Ok(Start { lazy, idle_stop: seconds(fields, "idle_stop_seconds")? })
}

fn decode(fields: Fields<'_>) -> Result<Decode, LeftOut> {
    match fields.text("decode")? {
        None | Some("text") => Ok(Decode::Text),
        Some("json") => Ok(Decode::Json),
        Some(_) => Err(LeftOut::Unexpected { key: "decode".into(), expected: "\"text\" or \"json\"" }),
    }
}

fn exposure(fields: Fields<'_>) -> Result<Exposure, LeftOut> {
    let unexpected = |key: &str, expected| LeftOut::Unexpected { key: key.into(), expected };
    let (to_code, directly) = match fields.text("expose")? {
        None | Some("code") => (true, false),
        Some("direct") => (false, true),
        Some("both") => (true, true),
        Some(_) => return Err(unexpected("expose", "\"code\", \"direct\" or \"both\"")),
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
    let Some(written) = fields.text("on_change")? else { return Ok(None) };
    let unexpected =
        || LeftOut::Unexpected { key: "on_change".into(), expected: "\"warn\", \"ask\" or \"block\"" };
    OnChange::named(written).map(Some).ok_or_else(unexpected)
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
    let client_credentials = match fields.text("grant")? {
        None | Some("authorization_code") => false,
        Some("client_credentials") => true,
        Some(_) => return Err(wrong("grant", "\"authorization_code\" or \"client_credentials\"")),
    };
    let client_id = fields.template("client_id")?;
    let client_secret = secret(fields, "client_secret", "oauth.client_secret")?;
    let private_key = secret(fields, "private_key", "oauth.private_key")?;
    if client_secret.is_some() && private_key.is_some() {
        return Err(wrong("private_key", "either this or client_secret"));
    }
    if client_credentials && (client_id.is_none() || (client_secret.is_none() && private_key.is_none())) {
        return Err(wrong("grant", "client_id, and client_secret or private_key, with client_credentials"));
    }
    let signing_algorithm = fields.text("signing_algorithm")?.map(str::to_owned);
    if signing_algorithm.as_deref().is_some_and(|algorithm| !ALGORITHMS.contains(&algorithm)) {
        return Err(wrong("signing_algorithm", "RS256, RS384, RS512, ES256 or ES384"));
    }
    let port = within(fields, "callback_port", (1, 65_535), "1 to 65535")?;
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
