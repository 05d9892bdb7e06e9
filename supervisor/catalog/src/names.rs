//! The one rule for names that code cannot write, or that are taken: `docs/code.md`, *Names*.

use std::collections::{HashMap, HashSet};

/// Keywords of Python.
const PYTHON: &str = "False None True and as assert async await break class continue def del elif else except finally \
    for from global if import in is lambda nonlocal not or pass raise return try while with yield";
/// What no JavaScript function can be called in a module.
const JAVASCRIPT: &str = "arguments await break case catch class const continue debugger default delete do else enum \
    eval export extends false finally for function if implements import in instanceof interface let new null \
    package private protected public return static super switch this throw true try typeof var void while with \
    yield";

/// A name that both languages accept for a function.
pub(crate) fn identifier(name: &str) -> String {
    let identifier = plain(name);
    if is_word(&identifier, PYTHON) || is_word(&identifier, JAVASCRIPT) {
        identifier + "_"
    } else {
        identifier
    }
}

/// The names of tools, each of its own: whatever is called so already keeps its name, and the others are numbered in the
/// order of the alphabet.
pub(crate) fn identifiers(names: &[&str]) -> Vec<String> {
    distinct(names, identifier)
}

/// The names of one tool's parameters as Python's keywords for them.
pub(crate) fn parameter_identifiers(names: &[&str]) -> Vec<String> {
    distinct(names, python_name)
}

/// A name that Python accepts for a parameter or a module: TypeScript has both as strings.
pub fn python_name(name: &str) -> String {
    let identifier = plain(name);
    if is_word(&identifier, PYTHON) { identifier + "_" } else { identifier }
}

/// Letters, digits and `_`, of which the first is no digit, and no two `_` come first: those names belong to Python.
fn plain(name: &str) -> String {
    let mut identifier: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let underscores = identifier.len() - identifier.trim_start_matches('_').len();
    identifier.drain(..underscores.saturating_sub(1));
    if identifier.is_empty() || identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    identifier
}

fn distinct(names: &[&str], identifier: impl Fn(&str) -> String) -> Vec<String> {
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

/// What two forms of a name have in common: `list-issues`, `list_issues` and `listIssues` are one.
pub fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// `list_issues` as `listIssues`.
pub(crate) fn camel(identifier: &str) -> String {
    let mut camel = String::with_capacity(identifier.len());
    let mut is_next_large = false;
    for c in identifier.chars() {
        match c {
            '_' if !camel.is_empty() => is_next_large = true,
            c if std::mem::take(&mut is_next_large) => camel.push(c.to_ascii_uppercase()),
            c => camel.push(c),
        }
    }
    camel
}

/// Whether the text is a name in both languages, keywords included.
pub(crate) fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether Python has the word for itself.
pub(crate) fn is_python_keyword(name: &str) -> bool {
    is_word(name, PYTHON)
}

/// Whether JavaScript has the word for itself.
pub(crate) fn is_javascript_keyword(name: &str) -> bool {
    is_word(name, JAVASCRIPT)
}

fn is_word(name: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_name_may_have_becomes_an_underscore() {
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
    fn names_that_collide_are_numbered_whatever_their_order() {
        assert_eq!(identifiers(&["a-b", "a.b", "a_b"]), ["a_b_2", "a_b_3", "a_b"]);
        assert_eq!(identifiers(&["a_b", "a.b", "a-b"]), ["a_b", "a_b_3", "a_b_2"]);
        assert_eq!(identifiers(&["a-b", "a_b_2", "a/b"]), ["a_b", "a_b_2", "a_b_3"]);
        assert_eq!(identifiers(&["class", "class_"]), ["class__2", "class_"]);
        assert_eq!(parameter_identifiers(&["class", "default", "a-b"]), ["class_", "default", "a_b"]);
    }

    #[test]
    fn forms_of_a_name_fold_to_one() {
        for name in ["list-issues", "list_issues", "listIssues", "LIST/ISSUES", "list_issues_"] {
            assert_eq!(folded(name), "listissues", "{name}");
        }
        assert_eq!(camel("list_issues_of_2"), "listIssuesOf2");
        assert_eq!([camel("_2fa"), camel("delete_"), camel("x")], ["_2fa", "delete", "x"]);
    }
}
