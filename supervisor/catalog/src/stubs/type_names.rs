//! Creates distinct names for the types that a stub file declares.

use std::collections::HashSet;

const CHARS_MAX: usize = 80;

/// The names that are in use in one stub file.
#[derive(Debug, Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    pub(super) fn new<'a>(taken: impl IntoIterator<Item = &'a str>) -> Self {
        Self(taken.into_iter().map(str::to_owned).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Reserves a name and returns it. If the wanted name is in use, a number is appended.
    pub(super) fn reserve(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}

/// Joins two names to a type name in Pascal case: `list_issues` and `state` become `ListIssuesState`.
pub(super) fn type_name(outer: &str, inner: &str) -> String {
    let mut name = String::with_capacity(outer.len() + inner.len());
    for word in [outer, inner] {
        let mut is_next_large = true;
        for c in word.chars() {
            if !c.is_ascii_alphanumeric() {
                is_next_large = true;
            } else if name.len() < CHARS_MAX {
                name.push(if std::mem::take(&mut is_next_large) { c.to_ascii_uppercase() } else { c });
            }
        }
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'T');
    }
    name
}
