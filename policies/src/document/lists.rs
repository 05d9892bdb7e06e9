//! The lists of a server's table.

use std::collections::HashMap;

use super::reader::{Key, Reader, Value, kind_of};
use crate::list::{Entry, List};
use crate::pattern::{Pattern, Subject};

/// Reads the list below a key; whatever is wrong in it goes to the findings, and the rest is read all the same.
pub(super) fn list(reader: &mut Reader<'_, '_>, subject: Subject, key: &Key<'_>, value: &Value<'_>) -> List {
    let line = reader.line(&key.span());
    let entries = entries(reader, subject, key, value);
    match subject {
        Subject::Anything => List::denying(line, entries),
        _ => List::permitting(line, entries),
    }
}

fn entries(reader: &mut Reader<'_, '_>, subject: Subject, key: &Key<'_>, value: &Value<'_>) -> Vec<Entry> {
    let name = key.get_ref();
    let Some(written) = value.get_ref().as_array() else {
        let title = format!("`{name}` must be a list of patterns, not {}", kind_of(value));
        let example = match subject {
            Subject::Tools | Subject::Anything => r#""list_*", "get_file""#,
            Subject::Resources => r#""file:///docs/*""#,
            Subject::Prompts => r#""review_*""#,
        };
        let help = format!("write it in brackets: {name} = [{example}]");
        reader.refuse(value.span(), title, "expected a list", help);
        return Vec::new();
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut first_lines = HashMap::new();
    for entry in written {
        if !reader.has_room(entry.span()) {
            break;
        }
        let Some(pattern) = pattern(reader, subject, entry) else { continue };
        let (line, span) = (reader.line(&entry.span()), entry.span());
        match first_lines.get(&pattern) {
            Some(first) => {
                let title = format!("\"{pattern}\" stands twice in `{name}`");
                let help = format!("remove this one: line {first} has it already");
                reader.refuse(span, title, "listed again", help);
            }
            None => {
                first_lines.insert(pattern.clone(), line);
                entries.push(Entry { pattern, line, span });
            }
        }
    }
    entries
}

pub(super) fn pattern(reader: &mut Reader<'_, '_>, subject: Subject, value: &Value<'_>) -> Option<Pattern> {
    let Some(text) = value.get_ref().as_str() else {
        let title = format!("a pattern must be a string, not {}", kind_of(value));
        let help = r#"write a name in quotes, such as "list_issues""#;
        reader.refuse(value.span(), title, "expected a string", help);
        return None;
    };
    let parsed = Pattern::parse(subject, text);
    parsed
        .map_err(|invalid| reader.refuse(value.span(), invalid.to_string(), "not a pattern", invalid.help()))
        .ok()
}

/// Finds what a list permits in vain. A reader would take such an entry for a permission, and it is none.
pub(super) fn refuse_dead_entries(reader: &mut Reader<'_, '_>, name: &str, list: &List, deny: &List) {
    for entry in &list.entries {
        let Some(stronger) = deny.covering(&entry.pattern) else { continue };
        let does = if name == "ask" { "ask about" } else { "allow" };
        let title = format!("\"{}\" in `{name}` can never {does} anything", entry.pattern);
        let help = format!(
            "line {} has \"{}\" in `deny`, which no list overrides: remove this entry, or narrow that one",
            stronger.line, stronger.pattern
        );
        reader.refuse(entry.span.clone(), title, "all of it is denied", help);
    }
}
