//! Parses the lists of a server's policy table: `allow`, `ask`, `deny`, `resources` and `prompts`.

use std::collections::HashMap;

use super::reader::{DocumentReader, Key, Value, kind_of};
use crate::list::{ListEntry, PatternList};
use crate::pattern::{Pattern, PatternKind};

/// Parses one list of patterns, such as `allow`. Reports invalid entries and keeps the others. `subject` is the kind of
/// names that the patterns match.
pub(super) fn list(
    reader: &mut DocumentReader<'_, '_>,
    subject: PatternKind,
    key: &Key<'_>,
    value: &Value<'_>,
) -> PatternList {
    let line = reader.line(&key.span());
    let entries = entries(reader, subject, key, value);
    match subject {
        PatternKind::Anything => PatternList::for_deny(line, entries),
        _ => PatternList::for_allow(line, entries),
    }
}

fn entries(
    reader: &mut DocumentReader<'_, '_>,
    subject: PatternKind,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Vec<ListEntry> {
    let name = key.get_ref();
    let Some(written) = value.get_ref().as_array() else {
        let title = format!("`{name}` must be a list of patterns, not {}", kind_of(value));
        let example = match subject {
            PatternKind::Tools | PatternKind::Anything => r#""list_*", "get_file""#,
            PatternKind::Resources => r#""file:///docs/*""#,
            PatternKind::Prompts => r#""review_*""#,
        };
        let help = format!("write it in brackets: {name} = [{example}]");
        reader.report_error(value.span(), title, "expected a list", help);
        return Vec::new();
    };
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut first_lines = HashMap::new();
    for entry in written {
        if !reader.count_pattern(entry.span()) {
            break;
        }
        let Some(pattern) = pattern(reader, subject, entry) else { continue };
        let (line, span) = (reader.line(&entry.span()), entry.span());
        match first_lines.get(&pattern) {
            Some(first) => {
                let title = format!("\"{pattern}\" occurs twice in `{name}`");
                let help = format!("remove this entry: line {first} has it already");
                reader.report_error(span, title, "duplicate entry", help);
            }
            None => {
                first_lines.insert(pattern.clone(), line);
                entries.push(ListEntry { pattern, line, span });
            }
        }
    }
    entries
}

pub(super) fn pattern(
    reader: &mut DocumentReader<'_, '_>,
    subject: PatternKind,
    value: &Value<'_>,
) -> Option<Pattern> {
    let Some(text) = value.get_ref().as_str() else {
        let title = format!("a pattern must be a string, not {}", kind_of(value));
        let help = r#"write a name in quotes, such as "list_issues""#;
        reader.report_error(value.span(), title, "expected a string", help);
        return None;
    };
    let parsed = Pattern::parse(subject, text);
    parsed
        .map_err(|invalid| {
            reader.report_error(value.span(), invalid.to_string(), "not a pattern", invalid.help())
        })
        .ok()
}

/// Reports entries of the list `name` that never have an effect, because an entry of `deny` matches all of their names.
/// A reader could mistake such entries for permissions.
pub(super) fn report_dead_entries(
    reader: &mut DocumentReader<'_, '_>,
    name: &str,
    list: &PatternList,
    deny: &PatternList,
) {
    for entry in &list.entries {
        let Some(stronger) = deny.entry_covering(&entry.pattern) else { continue };
        let verb = if name == "ask" { "require approval for" } else { "allow" };
        let title = format!("\"{}\" in `{name}` can never {verb} anything", entry.pattern);
        let help = format!(
            "line {} has \"{}\" in `deny`, which overrides all other lists: remove this entry, or narrow that one",
            stronger.line, stronger.pattern
        );
        reader.report_error(entry.span.clone(), title, "`deny` covers it completely", help);
    }
}
