//! Converts the names of tools, parameters and upstream servers to identifiers for programs. The rules
//! are in `docs/code.md`, section *Names*.

use std::collections::{HashMap, HashSet};

/// The reserved words of Python, separated by spaces.
const PYTHON_KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except finally \
    for from global if import in is lambda nonlocal not or pass raise return try while with yield";
/// Words that cannot be the name of a function in a JavaScript module, separated by spaces.
const JAVASCRIPT_KEYWORDS: &str = "arguments await break case catch class const continue debugger default delete do else enum \
    eval export extends false finally for function if implements import in instanceof interface let new null \
    package private protected public return static super switch this throw true try typeof var void while with \
    yield";

/// Returns an identifier for a tool name that is a valid function name in Python and TypeScript.
pub(crate) fn identifier(name: &str) -> String {
    let identifier = sanitize(name);
    if contains_word(&identifier, PYTHON_KEYWORDS) || contains_word(&identifier, JAVASCRIPT_KEYWORDS) {
        identifier + "_"
    } else {
        identifier
    }
}

/// Returns a distinct identifier for each tool name. A name that is already an identifier stays unchanged. Then the
/// other names get their identifiers, in alphabetical order of the names. If an identifier is in use already, a number
/// is appended to it.
pub(crate) fn identifiers(names: &[&str]) -> Vec<String> {
    make_distinct(names, identifier)
}

/// Returns a distinct Python keyword argument for each parameter name of a tool.
pub(crate) fn parameter_identifiers(names: &[&str]) -> Vec<String> {
    make_distinct(names, python_name)
}

/// Converts the name of a parameter or of an upstream server to the name of the keyword argument or module in Python.
/// In TypeScript, both names are strings and stay unchanged.
pub fn python_name(name: &str) -> String {
    let identifier = sanitize(name);
    if contains_word(&identifier, PYTHON_KEYWORDS) { identifier + "_" } else { identifier }
}

/// Replaces all characters except ASCII letters, digits and `_` by `_`. Inserts `_` before a leading digit, and reduces
/// leading underscores to one, because names with two have a special meaning in Python.
fn sanitize(name: &str) -> String {
    let mut identifier: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let underscores = identifier.len() - identifier.trim_start_matches('_').len();
    identifier.drain(..underscores.saturating_sub(1));
    if identifier.is_empty() || identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    identifier
}

fn make_distinct(names: &[&str], identifier: impl Fn(&str) -> String) -> Vec<String> {
    let mut identifiers: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_cached_key(|index| (identifiers[*index] != names[*index], names[*index]));
    let mut taken: HashSet<String> = HashSet::with_capacity(names.len());
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for index in order {
        let wished = identifiers[index].clone();
        while taken.contains(&identifiers[index]) {
            let number = numbers.entry(wished.clone()).and_modify(|number| *number += 1).or_insert(2);
            identifiers[index] = format!("{wished}_{number}");
        }
        taken.insert(identifiers[index].clone());
    }
    identifiers
}

/// Returns the ASCII letters and digits of a name in lower case. The result is the same for `list-issues`,
/// `list_issues` and `listIssues`.
pub fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Converts an identifier to camel case, such as `list_issues` to `listIssues`.
pub(crate) fn camel_case(identifier: &str) -> String {
    let mut text = String::with_capacity(identifier.len());
    let mut is_next_large = false;
    for c in identifier.chars() {
        match c {
            '_' if !text.is_empty() => is_next_large = true,
            c if std::mem::take(&mut is_next_large) => text.push(c.to_ascii_uppercase()),
            c => text.push(c),
        }
    }
    text
}

/// Returns whether the name is an identifier in both Python and TypeScript. Keywords count as identifiers.
pub(crate) fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether the name is a reserved word of Python.
pub(crate) fn is_python_keyword(name: &str) -> bool {
    contains_word(name, PYTHON_KEYWORDS)
}

/// Returns whether the name cannot be a function name in JavaScript, because it is reserved.
pub(crate) fn is_javascript_keyword(name: &str) -> bool {
    contains_word(name, JAVASCRIPT_KEYWORDS)
}

fn contains_word(name: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_characters_become_underscores() {
        let rows = [
            ("list-issues/v2", "list_issues_v2"),
            ("2fa", "_2fa"),
            ("class", "class_"),
            ("delete", "delete_"),
            ("None", "None_"),
            ("__init__", "_init__"),
            ("größe", "gr__e"),
            ("", "_"),
            ("print", "print"),
        ];
        for (name, expected) in rows {
            assert_eq!(identifier(name), expected, "{name}");
        }
    }

    #[test]
    fn colliding_names_are_numbered_independently_of_order() {
        assert_eq!(identifiers(&["a-b", "a.b", "a_b"]), ["a_b_2", "a_b_3", "a_b"]);
        assert_eq!(identifiers(&["a_b", "a.b", "a-b"]), ["a_b", "a_b_3", "a_b_2"]);
        assert_eq!(identifiers(&["a-b", "a_b_2", "a/b"]), ["a_b", "a_b_2", "a_b_3"]);
        assert_eq!(identifiers(&["class", "class_"]), ["class__2", "class_"]);
        assert_eq!(parameter_identifiers(&["class", "default", "a-b"]), ["class_", "default", "a_b"]);
    }

    #[test]
    fn spellings_of_a_name_normalize_alike() {
        for name in ["list-issues", "list_issues", "listIssues", "LIST/ISSUES", "list_issues_"] {
            assert_eq!(normalized(name), "listissues", "{name}");
        }
        assert_eq!(camel_case("list_issues_of_2"), "listIssuesOf2");
        assert_eq!([camel_case("_2fa"), camel_case("delete_"), camel_case("x")], ["_2fa", "delete", "x"]);
    }
}
