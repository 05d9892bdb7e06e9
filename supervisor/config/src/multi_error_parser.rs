//! Deserializes `config.toml` and reports all of its errors at once: each invalid key is reported and removed, until
//! the remaining keys can be deserialized.

use std::ops::Range;

use lockhouse_policies::{DIAGNOSTICS_MAX, most_similar_name};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::keys::TableSpec;

/// The error for a key or value that cannot be read. Its texts contain no value of the file, which could be a secret.
#[derive(Debug)]
pub(super) struct FieldError {
    pub(super) span: Option<Range<usize>>,
    pub(super) title: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
    /// Whether the error concerns a declared key of the configuration, in contrast to an unknown key or invalid TOML.
    pub(super) is_declared: bool,
}

/// The document without its invalid keys, and one error for each of them. The document is the default one if an error
/// belongs to no key, or if there are too many errors.
pub(super) struct ReadOutcome<'t, T> {
    pub(super) document: T,
    pub(super) errors: Vec<FieldError>,
    /// The parsed TOML file, in which the byte ranges of keys can be looked up.
    pub(super) root: DeTable<'t>,
}

/// Deserializes a TOML file whose tables are declared in `declared`. Invalid keys are reported in the outcome.
///
/// # Errors
/// The text is not valid TOML.
pub(super) fn read<'t, T: DeserializeOwned + Default>(
    text: &'t str,
    declared: &TableSpec,
) -> Result<ReadOutcome<'t, T>, FieldError> {
    let parsed = DeTable::parse(text).map_err(|error| FieldError {
        span: error.span(),
        title: "this is not valid TOML".to_owned(),
        label: redact_values(error.message()),
        help: None,
        is_declared: false,
    })?;
    let whole = parsed.span();
    let root = parsed.into_inner();
    let (mut rest, mut errors) = (root.clone(), Vec::new());
    let document = loop {
        match T::deserialize(Deserializer::from(Spanned::new(whole.clone(), rest.clone()))) {
            Ok(document) => break document,
            Err(error) => {
                let left_out = error.span().and_then(|span| remove_key_at(&mut rest, &span));
                let is_left_out = left_out.is_some();
                errors.push(FieldError::from_toml(&error, left_out));
                if !is_left_out || errors.len() >= DIAGNOSTICS_MAX {
                    break T::default();
                }
            }
        }
    };
    errors.extend(declared.all().into_iter().flat_map(|table| missing(&root, table)));
    errors.sort_by_key(|error| error.span.as_ref().map(|span| span.start));
    Ok(ReadOutcome { document, errors, root })
}

/// Returns an error for each required key that is missing in the table `declared`. Returns no errors if the file does
/// not contain the table.
fn missing(root: &DeTable<'_>, declared: &TableSpec) -> Vec<FieldError> {
    let Some(found) = value_of(root, declared.path) else { return Vec::new() };
    let Some(table) = found.get_ref().as_table() else { return Vec::new() };
    let absent = declared.keys.iter().filter(|key| key.is_required && table.get(key.name).is_none());
    let error = |name| FieldError {
        span: Some(found.span()),
        title: format!("the key `{name}` is missing"),
        label: format!("[{}] needs it", declared.path),
        help: None,
        is_declared: true,
    };
    absent.map(|key| error(key.name)).collect()
}

/// Returns the byte range of the value at a dotted key path. `None` if there is no such value.
pub(super) fn span_of(root: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    value_of(root, key).map(Spanned::span)
}

fn value_of<'r, 't>(root: &'r DeTable<'t>, key: &str) -> Option<&'r Spanned<DeValue<'t>>> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let value = root.get(first)?;
    match rest {
        None => Some(value),
        Some(rest) => value_of(value.get_ref().as_table()?, rest),
    }
}

/// Removes the innermost key whose name or value contains the byte range `span`. Returns the dotted path of the removed
/// key, or `None` if no key contains the range.
fn remove_key_at(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    for (key, value) in table.iter_mut() {
        if let DeValue::Table(below) = value.get_mut()
            && let Some(inner) = remove_key_at(below, span)
        {
            return Some(format!("{}.{inner}", key.get_ref()));
        }
    }
    let is_there = |part: Range<usize>| part.start <= span.start && span.end <= part.end;
    let found = table.iter().find(|(key, value)| is_there(key.span()) || is_there(value.span()));
    let name = found.map(|(key, _)| key.get_ref().to_string())?;
    table.remove(name.as_str());
    Some(name)
}

impl FieldError {
    fn from_toml(error: &Error, key: Option<String>) -> Self {
        let (message, span) = (error.message(), error.span());
        let key = key.unwrap_or_default();
        if let Some(unknown) = message.strip_prefix("unknown field `") {
            let mut quoted = unknown.split('`').step_by(2);
            let name = quoted.next().unwrap_or_default().to_owned();
            let known: Vec<&str> = unknown.split('`').skip(2).step_by(2).collect();
            let help = match most_similar_name(&name, known.iter().copied()) {
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            let table = key
                .rsplit_once('.')
                .map_or_else(|| "the configuration".to_owned(), |(table, _)| format!("[{table}]"));
            return Self {
                span,
                title: format!("unknown key `{name}`"),
                label: format!("not a key of {table}"),
                help: Some(help),
                is_declared: false,
            };
        }
        let title =
            if key.is_empty() { "this value is not valid".to_owned() } else { format!("{key} is not valid") };
        Self { span, title, label: redact_values(message), help: None, is_declared: !key.is_empty() }
    }
}

/// Reduces a serde error message to the expected type, since the actual value in the message may be a secret.
fn redact_values(message: &str) -> String {
    let expected = message.strip_prefix("invalid ").and_then(|rest| rest.rsplit_once(", expected "));
    match expected {
        Some((_, expected)) => format!("expected {}", describe_type(expected)),
        None => message.to_owned(),
    }
}

/// Translates type names of Rust and serde into plain words.
fn describe_type(expected: &str) -> String {
    match expected {
        "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "path string" => "a path in quotes".to_owned(),
        expected if expected.starts_with("struct ") => "a table".to_owned(),
        expected => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{DeclaredTable, table};

    table! {
        /// the top level of the test's configuration file
        pub(super) struct Outer = "" {
            /// a key for the test, whose value is a list
            list: Vec<String> = Vec::new();
            table first: Inner;
            table second: Inner;
            table third: Option<Third>;
        }
    }

    table! {
        /// a table with a number and a switch
        pub(super) struct Inner = "first" {
            /// a key for the test, whose value is a number
            number: u32 = 0;
            /// a key for the test, whose value is true or false
            switch: bool = false;
        }
    }

    table! {
        /// a table with required keys
        pub(super) struct Third = "third" {
            /// a required key for the test
            text: String = String::new(), required = true;
            /// another required key for the test
            other: String = String::new(), required = true;
        }
    }

    #[test]
    fn every_error_is_reported_and_the_rest_is_read() {
        let text = "lst = 3\nlist = \"secret\"\n[first]\nnumber = \"secret\"\nswich = true\n[second]\nnumber = 7\nswitch = 1\n[thrid]\n[third]\nother = \"x\"\n";
        let read: ReadOutcome<'_, Outer> =
            read(text, &Outer::spec()).map_err(|error| error.title).expect("TOML");
        let message: Vec<String> = read
            .errors
            .iter()
            .map(|error| {
                let line = 1 + text[..error.span.clone().expect("a span").start].matches('\n').count();
                format!("{line}: {}: {} {}", error.title, error.label, error.help.clone().unwrap_or_default())
            })
            .collect();
        let expected = [
            "1: unknown key `lst`: not a key of the configuration did you mean `list`?",
            "2: list is not valid: expected a list ",
            "4: first.number is not valid: expected a whole number ",
            "5: unknown key `swich`: not a key of [first] did you mean `switch`?",
            "8: second.switch is not valid: expected true or false ",
            "9: unknown key `thrid`: not a key of the configuration did you mean `third`?",
            "10: the key `text` is missing: [third] needs it",
        ];
        assert_eq!(message.len(), expected.len(), "{message:#?}");
        for (message, expected) in message.iter().zip(expected) {
            assert!(message.starts_with(expected), "{message}\n{expected}");
        }
        assert_eq!(read.document.second.number, 7);
        assert_eq!(span_of(&read.root, "second.number").map(|span| &text[span]), Some("7"));
    }
}
