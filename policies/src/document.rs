//! A policy's text, read into tables with all errors at once.

mod clients;
mod conditions;
mod limits;
mod lists;
mod reader;
mod rules;
mod servers;

use std::collections::HashSet;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, Findings};
use crate::layer::Layer;
use crate::source::{Lines, Source};

use reader::{Key, Reader, kind_of};

/// The longest policy document, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The most patterns in all lists, rules and conditions of a policy together.
pub const PATTERNS_MAX: usize = 10_000;

/// The most rules of a policy.
pub const RULES_MAX: usize = 5_000;

const DOCUMENT_KEYS: &str = "a policy has the keys `version`, `servers`, `clients` and `limits`";

pub(crate) fn read(source: Source) -> Result<Layer, Diagnostics> {
    if source.text.len() > TEXT_BYTES_MAX {
        let title = format!("the policy is longer than {TEXT_BYTES_MAX} bytes");
        let help = "join names that begin alike into one pattern, such as \"list_*\"";
        return Err(Diagnostic::new(&source, None, title, "").with_help(help).into());
    }
    let mut layer = read_document(&source)?;
    layer.source = Some(source);
    Ok(layer)
}

fn read_document(source: &Source) -> Result<Layer, Diagnostics> {
    let document = parse_toml(source)?;
    check_version(source, &document)?;
    let mut findings = Findings::new(source);
    let mut reader = Reader::new(&mut findings, Lines::of(&source.text));
    let mut layer = Layer::none();
    for (key, value) in &document {
        match key.get_ref().as_ref() {
            "version" => {}
            "servers" => layer.servers = servers::servers(&mut reader, "", key, value),
            "clients" => layer.clients = clients::clients(&mut reader, key, value),
            "limits" => layer.limits = limits::table(&mut reader, "limits", key, value),
            _ => refuse_key(&mut reader, key),
        }
    }
    findings.into_result()?;
    Ok(layer)
}

fn refuse_key(reader: &mut Reader<'_, '_>, key: &Key<'_>) {
    let help = match key.get_ref().as_ref() {
        unknown @ ("allow" | "ask" | "deny" | "resources" | "prompts") => {
            format!("put it into the table of a server: [servers.NAME], then {unknown} = [...]")
        }
        "rules" => "put it into the table of a server: [[servers.NAME.rules]]".to_owned(),
        "rate" => "put it into the table [limits], or into the one of a server: [servers.NAME]".to_owned(),
        _ => DOCUMENT_KEYS.to_owned(),
    };
    reader.unknown_key(key, "a policy", &help);
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
