//! Parses the text of a policy document into a [`Layer`], and reports all of its errors at once.

mod approval_keys;
mod clients;
mod conditions;
mod limit_keys;
mod lists;
mod reader;
mod roles;
mod rules;
mod servers;

use std::collections::HashSet;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, DiagnosticCollector, Diagnostics};
use crate::layer::Layer;
use crate::source::{LineIndex, Source};

use reader::{DocumentReader, Key, kind_of};

/// The maximum length of a policy document, in bytes. A longer document is rejected.
/// Bound: configuration and policy.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The maximum total number of patterns and condition values in one policy document. A document with more is
/// rejected.
/// Bound: configuration and policy.
pub const PATTERNS_MAX: usize = 10_000;

/// The maximum number of rules in one policy document, in all of its tables together. A document with more rules is
/// rejected.
/// Bound: configuration and policy.
pub const RULES_MAX: usize = 5_000;

const DOCUMENT_KEYS: &str = "a policy has the keys `version`, `servers`, `clients`, `roles` and `limits`";

pub(crate) fn read(source: Source) -> Result<Layer, Diagnostics> {
    if source.text.len() > TEXT_BYTES_MAX {
        let title = format!("the policy is longer than {TEXT_BYTES_MAX} bytes");
        let help = "replace names with a common prefix by one pattern, such as \"list_*\"";
        return Err(Diagnostic::new(&source, None, title, "").with_help(help).into());
    }
    let mut layer = read_document(&source)?;
    layer.source = Some(source);
    Ok(layer)
}

fn read_document(source: &Source) -> Result<Layer, Diagnostics> {
    let document = parse_toml(source)?;
    check_version(source, &document)?;
    let mut findings = DiagnosticCollector::new(source);
    let mut reader = DocumentReader::new(&mut findings, LineIndex::new(&source.text));
    let mut layer = Layer::empty();
    for (key, value) in &document {
        match key.get_ref().as_ref() {
            "version" => {}
            "servers" => layer.servers = servers::servers(&mut reader, "", key, value),
            "clients" => layer.clients = clients::clients(&mut reader, key, value),
            "roles" => layer.roles = Some(roles::roles(&mut reader, key, value)),
            "limits" => layer.limits = limit_keys::table(&mut reader, "limits", key, value),
            _ => report_misplaced_key(&mut reader, key),
        }
    }
    findings.into_result()?;
    Ok(layer)
}

fn report_misplaced_key(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>) {
    let help = match key.get_ref().as_ref() {
        unknown @ ("allow" | "ask" | "deny" | "resources" | "prompts") => {
            format!("put it into the table of a server: [servers.NAME], then {unknown} = [...]")
        }
        "rules" => "put it into the table of a server: [[servers.NAME.rules]]".to_owned(),
        "rate" => "put it into the table [limits] or into that of a server: [servers.NAME]".to_owned(),
        _ => DOCUMENT_KEYS.to_owned(),
    };
    reader.unknown_key(key, "a policy", &help);
}

fn parse_toml(source: &Source) -> Result<DeTable<'_>, Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    let mut findings = DiagnosticCollector::new(source);
    let lines = LineIndex::new(&source.text);
    let mut lines_seen = HashSet::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        // After one error the parser reports follow-up errors on the same line; only the first is kept.
        if lines_seen.insert(lines.line_at(span.start)) {
            findings.add(span, "this is not valid TOML", error.message(), toml_help(error.message()));
        }
    }
    findings.into_result()?;
    Ok(document.into_inner())
}

/// Returns a help text for a TOML syntax error: what the author probably has to correct. `message` is the error message
/// of the TOML parser.
fn toml_help(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "a key may occur only once in a table, and a table only once in a file: merge the two"
    } else if message.contains("array") {
        "look for a list above that lacks its closing `]`, or for entries that no comma separates"
    } else if message.contains("string") {
        "put the text in quotes, on one line"
    } else {
        "a policy looks like this: version = 1, then [servers.NAME], and below it allow = [\"...\"]"
    }
}

/// Checks that `version` is 1. A document of another version is rejected before its other keys are read, because they
/// may have other meanings in that version.
fn check_version(source: &Source, document: &DeTable<'_>) -> Result<(), Diagnostics> {
    let Some(version) = document.get("version") else {
        let missing =
            Diagnostic::new(source, Some(0..0), "the policy has no `version`", "`version` is missing");
        return Err(missing.with_help("write `version = 1` as its first line, above all tables").into());
    };
    let number = version.get_ref().as_integer().and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
    if number == Some(1) {
        return Ok(());
    }
    let (title, label) = match version.get_ref() {
        DeValue::Integer(other) => {
            (format!("policy version {other} is not supported"), "only version 1 is supported")
        }
        _ => (format!("`version` must be the number 1, not {}", kind_of(version)), "expected 1"),
    };
    let help = "write `version = 1`; a policy of a later version needs a later version of lockhouse";
    Err(Diagnostic::new(source, Some(version.span()), title, label).with_help(help).into())
}
