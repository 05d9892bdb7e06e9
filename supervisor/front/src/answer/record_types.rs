//! Gives short names to record types, such as `{ id: str, title: str }`, that several signatures in one
//! answer contain. The answer then shows each record type only once.

use std::collections::BTreeMap;

/// Minimum length of a record type that gets a name, in characters.
const RECORD_CHARS_MIN: usize = 24;
/// Maximum number of record types of one answer that get names.
const NAMES_MAX: usize = 9;

/// Replaces record types that occur more than once in all signatures together by names. Returns a line with the
/// definition of each name, such as `T1 = { id: str, title: str }`.
pub(super) fn name_repeated(signatures: &mut [String]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    while named.len() < NAMES_MAX {
        let Some(record) = longest_repeated(signatures.iter().chain(&named)) else { break };
        let name = format!("T{}", named.len() + 1);
        for text in signatures.iter_mut().chain(&mut named) {
            *text = text.replace(&record, &name);
        }
        named.push(record);
    }
    named.iter().zip(1..).map(|(record, number)| format!("T{number} = {record}")).collect()
}

/// Returns the longest record type that occurs more than once in all `texts` together, if it has at least
/// [`RECORD_CHARS_MIN`] characters.
fn longest_repeated<'a>(texts: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in texts {
        for record in records(text) {
            *counts.entry(record).or_default() += 1;
        }
    }
    let is_long = |record: &str| record.chars().count() >= RECORD_CHARS_MIN;
    let repeated = counts.into_iter().filter(|(record, count)| *count > 1 && is_long(record));
    repeated.max_by_key(|(record, _)| record.len()).map(|(record, _)| record.to_owned())
}

/// Returns the characters of a signature outside its quoted texts, each with its offset. The quotes are left out too.
pub(super) fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut is_escaped) = (None, false);
    text.char_indices().filter(move |(_, c)| {
        match (quote, *c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(*c),
            (None, _) => return true,
        }
        false
    })
}

/// Returns the record types in a signature: the texts in braces, except the object of all parameters in TypeScript. If
/// `text` is itself a record type, returns only the record types inside it.
fn records(text: &str) -> Vec<&str> {
    let (mut open, mut records) = (Vec::new(), Vec::new());
    for (at, c) in outside_quotes(text) {
        match c {
            '{' => open.push(at),
            '}' => {
                if let Some(start) = open.pop().filter(|start| !text[..*start].ends_with('(')) {
                    records.push(&text[start..=at]);
                }
            }
            _ => {}
        }
    }
    // A whole definition is no part of itself.
    records.retain(|record| *record != text);
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(signatures: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut signatures: Vec<String> = signatures.iter().map(|text| (*text).to_owned()).collect();
        let names = name_repeated(&mut signatures);
        (names, signatures)
    }

    #[test]
    fn a_repeated_record_type_is_shown_once() {
        let event = "{ id: str, title: str, start: str }";
        let (names, signatures) = named(&[
            &format!("find(day: str) -> list[{event}]"),
            &format!("get(id: str) -> {event}"),
            "other(x: str) -> { a: int }",
        ]);
        assert_eq!(names, [format!("T1 = {event}")]);
        assert_eq!(
            signatures,
            ["find(day: str) -> list[T1]", "get(id: str) -> T1", "other(x: str) -> { a: int }"]
        );
    }

    #[test]
    fn record_types_within_record_types_are_named_too() {
        let user = "{ name: str, email: str, age: int }";
        let team = format!("{{ lead: {user}, members: list[{user}] }}");
        let (names, signatures) = named(&[&format!("a() -> {team}"), &format!("b() -> {team}")]);
        assert_eq!(names, ["T1 = { lead: T2, members: list[T2] }".to_owned(), format!("T2 = {user}")]);
        assert_eq!(signatures, ["a() -> T1", "b() -> T1"]);
    }

    #[test]
    fn parameters_and_quoted_braces_are_no_record_types() {
        let same = "call({ owner: string, repository: string })";
        assert!(named(&[same, same]).0.is_empty());
        let literal = r#"f(x: "{ this is a literal string \" }") -> None"#;
        assert!(named(&[literal, literal]).0.is_empty());
        // The second has 14 characters in 24 bytes.
        for short in ["{ x: str }", "{ 名前名前名: str }"] {
            let (a, b) = (format!("a() -> {short}"), format!("b() -> {short}"));
            assert!(named(&[&a, &b]).0.is_empty(), "{short}: short types stay");
        }
    }
}
