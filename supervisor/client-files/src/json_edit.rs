//! Inserts and removes single properties in the text of a JSON file, so that every other byte of the file stays.
//!
//! The syntax tree of jsonc-parser (its feature `cst`) is not used, since it edits more than the property: a removal also
//! deletes the comments beside it and the line break of an object that becomes empty, and an insertion spreads an object
//! on one line over several lines. Then a removal would not take an insertion back exactly.

use lockhouse_config::dialects::{Node, Table, get_path};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// The value of a property to insert.
#[derive(Clone, Copy)]
pub(crate) struct PropertyValue<'v> {
    /// The value, which is formatted with the indentation of the file.
    pub(crate) json: &'v Json,
    /// The text of the value, which is inserted unchanged if no object on the way to it is missing.
    pub(crate) text: Option<&'v str>,
}

/// Inserts a property as the first one of the object at a path of keys. Objects that the file lacks on this path are
/// inserted too. Returns the new text of the file.
///
/// # Errors
/// The key whose value is no object, or that is missing in a file that is no object.
pub(crate) fn insert<'k>(
    text: &str,
    root: &Node,
    path: &[&'k str],
    name: &str,
    value: PropertyValue<'_>,
    layout: &Layout,
) -> Result<String, &'k str> {
    let (mut inside, mut missing) = (root, path);
    while let [key, rest @ ..] = missing {
        let table = inside.table().ok_or(*key)?;
        let Some(node) = get_path(table, &[key]) else { break };
        node.table().ok_or(*key)?;
        (inside, missing) = (node, rest);
    }
    let Some((outermost, inner)) = missing.split_first() else {
        return Ok(insert_first(text, inside, name, value, layout));
    };
    let mut nested = json!({name: value.json});
    for key in inner.iter().rev() {
        nested = json!({*key: nested});
    }
    let value = PropertyValue { json: &nested, text: None };
    Ok(insert_first(text, inside, outermost, value, layout))
}

/// Inserts a property as the first one of a JSON object, so that no line of its other properties changes.
fn insert_first(text: &str, object: &Node, name: &str, value: PropertyValue<'_>, layout: &Layout) -> String {
    let (before, after) = text.split_at(object.at.start + 1);
    let inner = &text[object.at.start + 1..object.at.end - 1];
    let outer = line_indent(text, object.at.start);
    let first = object.table().and_then(|table| table.first());
    let property = |depth: usize| match value.text {
        Some(text) => format!("{}: {text}", Json::from(name)),
        None => property(name, value.json, layout, depth),
    };
    let inserted = match first {
        // The whole object is on one line.
        Some((key, _)) if !text[object.at.start..key.at.start].contains('\n') => {
            let value = value.text.map_or_else(|| value.json.to_string(), str::to_owned);
            format!("{}: {value}, ", Json::from(name))
        }
        Some((key, _)) => {
            let indent = line_indent(text, key.at.start);
            let depth = indent.len() / layout.unit.len().max(1);
            format!("{}{indent}{},", layout.newline, property(depth))
        }
        None => {
            let depth = outer.len() / layout.unit.len().max(1) + 1;
            let end = if inner.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) {
                ""
            } else {
                &*format!("{}{outer}", layout.newline)
            };
            format!("{}{}{}{end}", layout.newline, layout.unit.repeat(depth), property(depth))
        }
    };
    [before, &inserted, after].concat()
}

/// Removes the property `index` of an object, with its comma and, if nothing else is on them, its lines. Comments stay.
/// `table` are the properties of the object as they were parsed from `text`; of the text, only what follows the
/// property may have changed since.
pub(crate) fn remove(text: &mut String, table: &Table, index: usize) {
    let (key, node) = &table[index];
    let comma = next_token(text, node.at.end);
    let has_comma = text[comma..].starts_with(',');
    let end = if has_comma { comma + 1 } else { node.at.end };
    let line_start = text[..key.at.start].rfind('\n').map_or(0, |at| at + 1);
    let begins_line = line_start > 0 && text[line_start..key.at.start].trim().is_empty();
    let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let ends_line = line_end < text.len() && text[end..line_end].trim().is_empty();
    let blank = |c: char| c == ' ' || c == '\t';
    let range = match (begins_line && ends_line, has_comma) {
        (true, true) => line_start..line_end + 1,
        (true, false) => {
            // The line break before the property is removed, and the one after it stays.
            let before = text[..line_start - 1].strip_suffix('\r').map_or(line_start - 1, str::len);
            let after = text[..line_end].strip_suffix('\r').map_or(line_end, str::len);
            before..after.max(end)
        }
        (false, true) => key.at.start..end + usize::from(text[end..].starts_with(blank)),
        (false, false) if begins_line => line_start..end,
        (false, false) => text[..key.at.start].trim_end_matches(blank).len()..end,
    };
    text.replace_range(range, "");
    let previous = index.checked_sub(1).map(|index| &table[index]).filter(|_| !has_comma);
    if let Some((_, previous)) = previous {
        let comma = next_token(text, previous.at.end);
        if text[comma..].starts_with(',') {
            text.replace_range(comma..comma + 1, "");
        }
    }
}

/// Returns the position of the first byte at or after `at` that is neither white space nor part of a comment.
fn next_token(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let length = if trimmed.starts_with("//") {
            trimmed.find('\n')
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map(|end| end + 2)
        } else {
            return at;
        };
        match length {
            Some(length) => at += length,
            None => return text.len(),
        }
    }
}

/// The indentation and line ending of a JSON file.
pub(crate) struct Layout {
    pub(crate) unit: String,
    pub(crate) newline: &'static str,
}

impl Layout {
    pub(crate) fn detect(text: &str) -> Self {
        let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let unit = text.lines().map(indent).find(|indent| !indent.is_empty() && indent.len() <= 8);
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { unit: unit.unwrap_or_else(|| "  ".into()), newline }
    }
}

/// Returns the white space at the beginning of the line that contains the byte `at`.
pub(crate) fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

/// Formats a property with the indentation of the file.
pub(crate) fn property(name: &str, value: &Json, layout: &Layout, depth: usize) -> String {
    format!("{}: {}", Json::from(name), pretty(value, layout, depth))
}

/// Formats JSON with the indentation of the file. `depth` is the nesting depth of the place where the JSON is
/// inserted.
pub(crate) fn pretty(value: &Json, layout: &Layout, depth: usize) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(layout.unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Serializing JSON values into memory cannot fail.
    if value.serialize(&mut serializer).is_err() {
        return value.to_string();
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    text.replace('\n', &format!("{}{}", layout.newline, layout.unit.repeat(depth)))
}

#[cfg(test)]
mod tests {
    use lockhouse_policies::Source;

    use super::*;
    use lockhouse_config::dialects::parse_json;

    fn parsed(text: &str) -> Node {
        parse_json(&Source { path: "file".into(), text: text.into() }).expect("JSON")
    }

    fn without(text: &str, names: &[&str]) -> String {
        let root = parsed(text);
        let table = root.table().expect("an object");
        let mut changed = text.to_owned();
        for index in (0..table.len()).rev().filter(|index| names.contains(&table[*index].0.name.as_str())) {
            remove(&mut changed, table, index);
        }
        changed
    }

    #[test]
    fn a_removed_property_leaves_the_others_and_the_comments() {
        for (text, names, expected) in [
            ("{\"a\": 1}", vec!["a"], "{}"),
            ("{\"a\": 1, \"b\": 2}", vec!["a"], "{\"b\": 2}"),
            ("{ \"a\": 1, \"b\": 2 }", vec!["b"], "{ \"a\": 1 }"),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", vec!["a"], "{\n  \"b\": 2\n}\n"),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", vec!["b"], "{\n  \"a\": 1\n}\n"),
            ("{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n", vec!["b"], "{\r\n  \"a\": 1\r\n}\r\n"),
            ("{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n", vec!["b", "c"], "{\n  \"a\": 1\n}\n"),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", vec!["a", "b"], "{\n}\n"),
            (
                "{\n  // x\n  \"a\": 1, // y\n  \"b\": 2 // z\n}\n",
                vec!["b"],
                "{\n  // x\n  \"a\": 1 // y\n // z\n}\n",
            ),
            ("{\n  \"a\": 1, // y\n  \"b\": 2}\n", vec!["b"], "{\n  \"a\": 1 // y\n}\n"),
            ("{\n  \"a\": 1 /* , */ ,\n  \"b\": 2,\n}\n", vec!["b"], "{\n  \"a\": 1 /* , */ ,\n}\n"),
        ] {
            let changed = without(text, &names);
            assert_eq!(changed, expected, "{text:?}");
            let left = parsed(text).table().expect("an object").len() - names.len();
            assert_eq!(parsed(&changed).table().map(Vec::len), Some(left), "{changed}");
        }
    }

    #[test]
    fn removal_takes_an_insertion_back_exactly() {
        for text in ["{\"a\": 1}", "{\n  \"a\": 1\n}\n", "{\n}\n", "{\r\n\t\"a\": 1\r\n}", "{ \"a\": 1 }"] {
            let layout = Layout::detect(text);
            let value = PropertyValue { json: &json!({"x": 1}), text: Some("{\"x\": 1}") };
            let with = insert(text, &parsed(text), &[], "new", value, &layout).expect("an object");
            assert_eq!(without(&with, &["new"]), text, "{with}");
        }
    }
}
