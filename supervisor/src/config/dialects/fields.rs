//! The fields of a server's entry, read with what is expected of each, and complained about without their values.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Place;
use super::syntax::Syntax;
use super::tree::{Node, Table, Value, get};
use crate::config::left_out::LeftOut;
use crate::config::references::Template;

/// Shorter and longer times of other programs are brought into what we permit.
const TIMES: (f64, f64) = (1.0, 86_400.0);
/// Entries of a list or table of one server.
const ENTRIES_MAX: usize = 10_000;

/// One entry of a file, in its dialect.
#[derive(Clone, Copy)]
pub(super) struct Fields<'f> {
    pub(super) table: &'f Table,
    pub(super) syntax: Syntax,
    pub(super) place: &'f Place<'f>,
}

fn unexpected<T>(key: impl Into<String>, expected: &'static str) -> Result<T, LeftOut> {
    Err(LeftOut::Unexpected { key: key.into(), expected })
}

impl<'f> Fields<'f> {
    /// Whether there is such a key, with a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// `null` is as good as nothing.
    pub(super) fn get(&self, key: &str) -> Option<&'f Node> {
        get(self.table, key).filter(|node| !matches!(node.value, Value::Null))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'f str>, LeftOut> {
        self.get(key).map(|node| node.text().map_or_else(|| unexpected(key, "a string"), Ok)).transpose()
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, LeftOut> {
        match self.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => unexpected(key, "true or false"),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, LeftOut> {
        match self.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(_) => unexpected(key, "a number"),
        }
    }

    /// A time that is written in units of so many seconds.
    pub(super) fn time(&self, key: &str, unit_seconds: f64) -> Result<Option<Duration>, LeftOut> {
        let time = |number: f64| Duration::from_secs_f64((number * unit_seconds).max(TIMES.0).min(TIMES.1));
        Ok(self.number(key)?.filter(|number| number.is_finite() && *number > 0.0).map(time))
    }

    pub(super) fn names(&self, key: &str) -> Result<Option<Vec<String>>, LeftOut> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let texts = node.list().filter(|list| list.len() <= ENTRIES_MAX);
        let texts = texts.and_then(|list| list.iter().map(|node| node.text().map(str::to_owned)).collect());
        texts.map_or_else(|| unexpected(key, "a list of strings"), |names| Ok(Some(names)))
    }

    pub(super) fn template(&self, key: &str) -> Result<Option<Template>, LeftOut> {
        self.text(key)?.map(|text| self.parse(key, text)).transpose()
    }

    pub(super) fn templates(&self, key: &str) -> Result<Vec<Template>, LeftOut> {
        let names = self.names(key)?.unwrap_or_default();
        names.iter().map(|text| self.parse(key, text)).collect()
    }

    pub(super) fn parse(&self, key: &str, text: &str) -> Result<Template, LeftOut> {
        let unknown =
            |_| LeftOut::Unexpected { key: key.to_owned(), expected: super::syntax::OWN_REFERENCES };
        self.syntax.template(text, self.place).map_err(unknown)
    }

    /// Names with values.
    pub(super) fn map(&self, key: &str) -> Result<BTreeMap<String, Template>, LeftOut> {
        let Some(node) = self.get(key) else { return Ok(BTreeMap::new()) };
        let Some(table) = node.table().filter(|table| table.len() <= ENTRIES_MAX) else {
            return unexpected(key, "a table of strings");
        };
        let mut map = BTreeMap::new();
        for (name, node) in table {
            let key = format!("{key}: {:?}", name.name);
            let value = match (&node.value, self.syntax) {
                (Value::Text(text), _) => self.parse(&key, text)?,
                // VS Code takes numbers as well, and null for a variable that is not to be there.
                (Value::Number(number), Syntax::Editor) => Template::literal(number.to_string()),
                (Value::Null, Syntax::Editor) => continue,
                _ => return unexpected(key, "a string"),
            };
            map.insert(name.name.clone(), value);
        }
        Ok(map)
    }

    /// The fields of a table in this one.
    pub(super) fn below(&self, key: &str) -> Result<Option<Fields<'f>>, LeftOut> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let table = node.table().map_or_else(|| unexpected(key, "a table"), Ok)?;
        Ok(Some(Fields { table, ..*self }))
    }
}
