//! Reading a TOML file with all of its faults at once: what does not fit is told and left out, until the rest fits.

use std::ops::Range;

use lockhouse_policies::{DIAGNOSTICS_MAX, nearest};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::keys::TableSpec;

/// One thing that does not fit. No value of the file is in its words.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) span: Option<Range<usize>>,
    pub(super) title: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
    /// Whether it is about a key that is declared.
    pub(super) is_declared: bool,
}

/// What was read, without that which does not fit.
pub(super) struct Read<'t, T> {
    pub(super) document: T,
    pub(super) misfits: Vec<Misfit>,
    /// For looking up where a key stands.
    pub(super) root: DeTable<'t>,
}

/// # Errors
/// Of a text that is no TOML, what is wrong with it.
pub(super) fn read<'t, T: DeserializeOwned + Default>(
    text: &'t str,
    declared: &TableSpec,
) -> Result<Read<'t, T>, Misfit> {
    let parsed = DeTable::parse(text).map_err(|error| Misfit {
        span: error.span(),
        title: "this is not valid TOML".to_owned(),
        label: without_values(error.message()),
        help: None,
        is_declared: false,
    })?;
    let whole = parsed.span();
    let root = parsed.into_inner();
    let (mut rest, mut misfits) = (root.clone(), Vec::new());
    let document = loop {
        match T::deserialize(Deserializer::from(Spanned::new(whole.clone(), rest.clone()))) {
            Ok(document) => break document,
            Err(error) => {
                let left_out = error.span().and_then(|span| leave_out(&mut rest, &span));
                let is_left_out = left_out.is_some();
                misfits.push(Misfit::of(&error, left_out));
                if !is_left_out || misfits.len() >= DIAGNOSTICS_MAX {
                    break T::default();
                }
            }
        }
    };
    misfits.extend(declared.all().into_iter().flat_map(|table| missing(&root, table)));
    misfits.sort_by_key(|misfit| misfit.span.as_ref().map(|span| span.start));
    Ok(Read { document, misfits, root })
}

/// Keys that a table cannot do without, where the table is there.
fn missing(root: &DeTable<'_>, declared: &TableSpec) -> Vec<Misfit> {
    let Some(found) = value_of(root, declared.path) else { return Vec::new() };
    let Some(table) = found.get_ref().as_table() else { return Vec::new() };
    let absent = declared.keys.iter().filter(|key| key.is_required && table.get(key.name).is_none());
    let misfit = |name| Misfit {
        span: Some(found.span()),
        title: format!("the key `{name}` is missing"),
        label: format!("[{}] needs it", declared.path),
        help: None,
        is_declared: true,
    };
    absent.map(|key| misfit(key.name)).collect()
}

/// Where the value of a key stands, whose way from the top has dots.
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

/// Removes the innermost key at a place, or whose value is there. Its name, with the tables around it.
fn leave_out(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    for (key, value) in table.iter_mut() {
        if let DeValue::Table(below) = value.get_mut()
            && let Some(inner) = leave_out(below, span)
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

impl Misfit {
    fn of(error: &Error, key: Option<String>) -> Self {
        let (message, span) = (error.message(), error.span());
        let key = key.unwrap_or_default();
        if let Some(unknown) = message.strip_prefix("unknown field `") {
            let mut quoted = unknown.split('`').step_by(2);
            let name = quoted.next().unwrap_or_default().to_owned();
            let known: Vec<&str> = unknown.split('`').skip(2).step_by(2).collect();
            let help = match nearest(&name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
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
            if key.is_empty() { "this value does not fit".to_owned() } else { format!("{key} does not fit") };
        Self { span, title, label: without_values(message), help: None, is_declared: !key.is_empty() }
    }
}

/// What a value may be, in place of the value: it may be a secret.
fn without_values(message: &str) -> String {
    let expected = message.strip_prefix("invalid ").and_then(|rest| rest.rsplit_once(", expected "));
    match expected {
        Some((_, expected)) => format!("expected {}", in_words(expected)),
        None => message.to_owned(),
    }
}

/// The types of Rust and serde as people call them.
fn in_words(expected: &str) -> String {
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
    use crate::config::keys::{DeclaredTable, table};

    table! {
        /// tables
        pub(super) struct Outer = "" {
            /// texts
            list: Vec<String> = Vec::new();
            table first: Inner;
            table second: Inner;
            table third: Option<Third>;
        }
    }

    table! {
        /// keys
        pub(super) struct Inner = "first" {
            /// a number
            number: u32 = 0;
            /// a switch
            switch: bool = false;
        }
    }

    table! {
        /// keys that it needs
        pub(super) struct Third = "third" {
            /// a text
            text: String = String::new(), required = true;
            /// another one
            other: String = String::new(), required = true;
        }
    }

    #[test]
    fn every_misfit_is_told_and_the_rest_is_read() {
        let text = "lst = 3\nlist = \"secret\"\n[first]\nnumber = \"secret\"\nswich = true\n[second]\nnumber = 7\nswitch = 1\n[thrid]\n[third]\nother = \"x\"\n";
        let read: Read<'_, Outer> = read(text, &Outer::spec()).map_err(|misfit| misfit.title).expect("TOML");
        let told: Vec<String> = read
            .misfits
            .iter()
            .map(|misfit| {
                let line = 1 + text[..misfit.span.clone().expect("a place").start].matches('\n').count();
                format!(
                    "{line}: {}: {} {}",
                    misfit.title,
                    misfit.label,
                    misfit.help.clone().unwrap_or_default()
                )
            })
            .collect();
        let expected = [
            "1: unknown key `lst`: not a key of the configuration did you mean `list`?",
            "2: list does not fit: expected a list ",
            "4: first.number does not fit: expected a whole number ",
            "5: unknown key `swich`: not a key of [first] did you mean `switch`?",
            "8: second.switch does not fit: expected true or false ",
            "9: unknown key `thrid`: not a key of the configuration did you mean `third`?",
            "10: the key `text` is missing: [third] needs it",
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}\n{expected}");
        }
        assert_eq!(read.document.second.number, 7);
        assert_eq!(span_of(&read.root, "second.number").map(|span| &text[span]), Some("7"));
    }
}
