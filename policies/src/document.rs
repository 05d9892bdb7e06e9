//! A policy's text, read into rules with all errors at once.

use std::collections::{BTreeMap, HashSet};

use lockhouse_protocol::ServerName;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, Findings};
use crate::list::{ListReader, kind_of};
use crate::pattern::Subject;
use crate::policy::{OnChange, ServerRules, TEXT_BYTES_MAX};
use crate::printable::printable;
use crate::source::{Lines, Source};

const DOCUMENT_KEYS: &str = "a policy has the keys `version` and `servers`";
const SERVER_KEYS: &str =
    "a server's table has the keys `allow`, `ask`, `deny`, `resources`, `prompts` and `on_change`";

pub(crate) fn read(source: &Source) -> Result<BTreeMap<ServerName, ServerRules>, Diagnostics> {
    if source.text.len() > TEXT_BYTES_MAX {
        let title = format!("the policy is longer than {TEXT_BYTES_MAX} bytes");
        let help = "join names that begin alike into one pattern, such as \"list_*\"";
        return Err(Diagnostic::new(source, None, title, "").with_help(help).into());
    }
    let document = parse_toml(source)?;
    check_version(source, &document)?;

    let mut findings = Findings::new(source);
    let lines = Lines::of(&source.text);
    let mut reader = ListReader { findings: &mut findings, lines: &lines, patterns: 0 };
    let mut servers = BTreeMap::new();
    for (key, value) in document.iter() {
        match key.get_ref().as_ref() {
            "version" => {}
            "servers" => servers = read_servers(&mut reader, key, value),
            unknown => {
                let help = match unknown {
                    "allow" | "deny" | "resources" | "prompts" => {
                        format!("put it into the table of a server: [servers.NAME], then {unknown} = [...]")
                    }
                    _ => DOCUMENT_KEYS.to_owned(),
                };
                reader.findings.add(
                    key.span(),
                    format!("unknown key `{unknown}`"),
                    "not a key of a policy",
                    help,
                );
            }
        }
    }
    findings.into_result()?;
    Ok(servers)
}

fn parse_toml(source: &Source) -> Result<DeTable<'_>, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    let mut findings = Findings::new(source);
    let lines = Lines::of(&source.text);
    let mut lines_seen = HashSet::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        // After one fault the parser finds others on the same line, which are none.
        if lines_seen.insert(lines.line_at(span.start)) {
            findings.add(span, "this is not valid TOML", error.message(), toml_help(error.message()));
        }
    }
    findings.into_result()?;
    Ok(document.into_inner())
}

/// The parser says what it met; a person wants to know what they forgot.
fn toml_help(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "a key may stand only once in a table, and a table only once in a file: join the two"
    } else if message.contains("array") {
        "look for a list above that lacks its closing `]`, or for entries without a comma between them"
    } else if message.contains("string") {
        "put the text between two quotes, on one line"
    } else {
        "a policy looks like this: version = 1, then [servers.NAME], and below it allow = [\"...\"]"
    }
}

/// A document of another version is not read any further: its keys may mean something else.
fn check_version(source: &Source, document: &DeTable<'_>) -> Result<(), Diagnostics> {
    let Some(version) = document.get("version") else {
        let missing = Diagnostic::new(
            source,
            Some(0..0),
            "the policy does not say its version",
            "`version` is missing",
        );
        return Err(missing.with_help("write `version = 1` as its first line, above all tables").into());
    };
    let number = version.get_ref().as_integer().and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
    if number == Some(1) {
        return Ok(());
    }
    let (title, label) = match version.get_ref() {
        DeValue::Integer(other) => {
            (format!("policies of version {other} are not known here"), "only 1 is known")
        }
        _ => (format!("`version` must be the number 1, not {}", kind_of(version)), "expected 1"),
    };
    let help = "write `version = 1`; for a policy of a later version, use a later lockhouse";
    Err(Diagnostic::new(source, Some(version.span()), title, label).with_help(help).into())
}

fn read_servers(
    reader: &mut ListReader<'_, '_>,
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> BTreeMap<ServerName, ServerRules> {
    let mut servers = BTreeMap::new();
    let Some(tables) = value.get_ref().as_table() else {
        let title = format!("`servers` must be a table, not {}", kind_of(value));
        reader.findings.add(
            key.span(),
            title,
            "expected a table",
            "write one table for each server: [servers.NAME]",
        );
        return servers;
    };
    for (name, value) in tables {
        let rules = read_server(reader, name, value);
        match ServerName::new(name.get_ref().as_ref()) {
            Ok(server) => _ = servers.insert(server, rules),
            Err(invalid) => {
                let help = "use the server's name as in the configuration, of A-Z a-z 0-9 _ -";
                reader.findings.add(name.span(), invalid.to_string(), "not a server's name", help);
            }
        }
    }
    servers
}

fn read_server(
    reader: &mut ListReader<'_, '_>,
    name: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> ServerRules {
    let mut rules = ServerRules::at(reader.lines.line_at(name.span().start));
    let Some(table) = value.get_ref().as_table() else {
        let title = format!("`servers.{}` must be a table, not {}", name.get_ref(), kind_of(value));
        let help = format!("write [servers.{}] and below it allow = [\"...\"]", name.get_ref());
        reader.findings.add(name.span(), title, "expected a table", help);
        return rules;
    };
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "allow" => rules.allow = Some(reader.read(Subject::Tools, key, value)),
            "ask" => rules.ask = Some(reader.read(Subject::Tools, key, value)),
            "resources" => rules.resources = Some(reader.read(Subject::Resources, key, value)),
            "prompts" => rules.prompts = Some(reader.read(Subject::Prompts, key, value)),
            "deny" => rules.deny = Some(reader.read(Subject::Anything, key, value)),
            "on_change" => rules.on_change = read_on_change(reader, value),
            unknown => refuse_server_key(reader, key, unknown),
        }
    }
    if let Some(deny) = &rules.deny {
        let lists = [("allow", &rules.allow), ("resources", &rules.resources), ("prompts", &rules.prompts)];
        for (name, list) in lists {
            if let Some(list) = list {
                reader.refuse_dead_entries(name, list, deny);
            }
        }
    }
    rules
}

fn read_on_change(reader: &mut ListReader<'_, '_>, value: &Spanned<DeValue<'_>>) -> OnChange {
    let written = value.get_ref().as_str();
    let known = OnChange::NAMES.iter().find(|(name, _)| written == Some(*name));
    known.map(|(_, choice)| *choice).unwrap_or_else(|| {
        let title = match written {
            Some(other) => format!("`on_change` cannot be \"{}\"", printable(other)),
            None => format!("`on_change` must be a string, not {}", kind_of(value)),
        };
        let help =
            "use \"warn\" (call it all the same), \"ask\" (not before a person accepts it) or \"block\"";
        reader.findings.add(value.span(), title, "expected \"warn\", \"ask\" or \"block\"", help);
        OnChange::default()
    })
}

fn refuse_server_key(reader: &mut ListReader<'_, '_>, key: &Spanned<DeString<'_>>, unknown: &str) {
    let effect = match unknown {
        "rules" => {
            "arguments are not looked at, so a tool that `allow` does not list is denied, with any arguments"
        }
        "rate" => {
            "calls are not slowed down, so a tool that `allow` lists may be called at any rate, and any other is denied"
        }
        _ => {
            let title = format!("unknown key `{unknown}`");
            return reader.findings.add(key.span(), title, "not a key of a server's table", SERVER_KEYS);
        }
    };
    let title = format!("this version of lockhouse does not know `{unknown}` yet");
    let help = format!("remove it; {SERVER_KEYS}. In this version {effect}");
    reader.findings.add(key.span(), title, "not known yet", help);
}
