//! Reads the fields of a server entry as values of a given type. Errors name the expected type and never contain the
//! actual value.

use std::collections::BTreeMap;
use std::time::Duration;

use super::SourceFile;
use super::document_tree::{Node, Table, Value, get};
use super::placeholder_syntax::PlaceholderSyntax;
use crate::placeholders::Template;
use crate::skip_reason::SkipReason;

/// The smallest and the largest timeout in seconds. A timeout in an AI client's file that is outside this range is set
/// to the nearer end of the range.
const TIMES: (f64, f64) = (1.0, 86_400.0);
/// The maximum number of items of one list or table in a server entry.
const ENTRIES_MAX: usize = 10_000;

/// The fields of one server entry, and the placeholder syntax of its file.
#[derive(Clone, Copy)]
pub(super) struct Fields<'f> {
    pub(super) table: &'f Table,
    pub(super) syntax: PlaceholderSyntax,
    pub(super) file: &'f SourceFile<'f>,
}

fn unexpected<T>(key: impl Into<String>, expected: &'static str) -> Result<T, SkipReason> {
    Err(SkipReason::Unexpected { key: key.into(), expected })
}

impl<'f> Fields<'f> {
    /// Whether the entry has the key with a value other than `null`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a key. A key that is absent or has the value `null` yields `None`.
    pub(super) fn get(&self, key: &str) -> Option<&'f Node> {
        get(self.table, key).filter(|node| !matches!(node.value, Value::Null))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'f str>, SkipReason> {
        self.get(key).map(|node| node.text().map_or_else(|| unexpected(key, "a string"), Ok)).transpose()
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, SkipReason> {
        match self.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => unexpected(key, "true or false"),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, SkipReason> {
        match self.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(_) => unexpected(key, "a number"),
        }
    }

    /// Reads a duration, which the file gives as a number of units; one unit is `unit_seconds` seconds. `None` if the
    /// key is absent, or its value is zero or negative.
    pub(super) fn time(&self, key: &str, unit_seconds: f64) -> Result<Option<Duration>, SkipReason> {
        let time = |number: f64| Duration::from_secs_f64((number * unit_seconds).max(TIMES.0).min(TIMES.1));
        Ok(self.number(key)?.filter(|number| number.is_finite() && *number > 0.0).map(time))
    }

    pub(super) fn names(&self, key: &str) -> Result<Option<Vec<String>>, SkipReason> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let texts = node.list().filter(|list| list.len() <= ENTRIES_MAX);
        let texts = texts.and_then(|list| list.iter().map(|node| node.text().map(str::to_owned)).collect());
        texts.map_or_else(|| unexpected(key, "a list of strings"), |names| Ok(Some(names)))
    }

    pub(super) fn template(&self, key: &str) -> Result<Option<Template>, SkipReason> {
        self.text(key)?.map(|text| self.parse(key, text)).transpose()
    }

    pub(super) fn templates(&self, key: &str) -> Result<Vec<Template>, SkipReason> {
        let names = self.names(key)?.unwrap_or_default();
        names.iter().map(|text| self.parse(key, text)).collect()
    }

    pub(super) fn parse(&self, key: &str, text: &str) -> Result<Template, SkipReason> {
        let unknown = |_| SkipReason::Unexpected {
            key: key.to_owned(),
            expected: super::placeholder_syntax::PLACEHOLDER_FORMS,
        };
        self.syntax.parse(text, self.file).map_err(unknown)
    }

    /// Reads a table whose values are strings that may contain placeholders. Returns an empty map if the table is
    /// absent.
    pub(super) fn map(&self, key: &str) -> Result<BTreeMap<String, Template>, SkipReason> {
        let Some(node) = self.get(key) else { return Ok(BTreeMap::new()) };
        let Some(table) = node.table().filter(|table| table.len() <= ENTRIES_MAX) else {
            return unexpected(key, "a table of strings");
        };
        let mut map = BTreeMap::new();
        for (name, node) in table {
            let key = format!("{key}: {:?}", name.name);
            let value = match (&node.value, self.syntax) {
                (Value::Text(text), _) => self.parse(&key, text)?,
                // VS Code also accepts numbers, and `null` for a variable that is to be unset.
                (Value::Number(number), PlaceholderSyntax::Editor) => Template::literal(number.to_string()),
                (Value::Null, PlaceholderSyntax::Editor) => continue,
                _ => return unexpected(key, "a string"),
            };
            map.insert(name.name.clone(), value);
        }
        Ok(map)
    }

    /// Returns the fields of a nested table. `None` if the table is absent.
    pub(super) fn subtable(&self, key: &str) -> Result<Option<Fields<'f>>, SkipReason> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let table = node.table().map_or_else(|| unexpected(key, "a table"), Ok)?;
        Ok(Some(Fields { table, ..*self }))
    }
}
