//! The tables of the configuration that a requirements file determines: each key that the file sets replaces the user's.

use std::path::Path;

use nix::unistd::geteuid;
use serde::Deserialize;
use toml::de::{DeTable, Deserializer};
use toml::{Spanned, Value};

use super::reader::Reader;
use crate::config_toml::ConfigToml;
use crate::keys::DeclaredTable;
use crate::multi_error_parser::span_of;
use crate::placeholders::account_home;

/// The keys that name files or directories, each with its table.
const PATHS: [(&[&str], &str); 12] = [
    (&["python"], "interpreter"),
    (&["python"], "extension"),
    (&["python"], "environment"),
    (&["javascript"], "worker"),
    (&["audit"], "directory"),
    (&["audit"], "forward_ca"),
    (&["sharing"], "directory"),
    (&["skills"], "directories"),
    (&["cluster"], "nats_ca"),
    (&["http"], "tokens"),
    (&["http", "tls"], "certificate"),
    (&["http", "tls"], "key"),
];

/// Removes the tables of the configuration from the document of a requirements file, and returns them.
pub(super) fn take_tables<'t>(root: &mut DeTable<'t>) -> DeTable<'t> {
    let mut tables = DeTable::new();
    for declared in ConfigToml::spec().tables {
        if let Some((key, table)) = root.remove_entry(declared.name()) {
            tables.insert(key, table);
        }
    }
    tables
}

/// Validates the tables, and returns what they set. Adds a fault to `reader` for each value that is not valid.
pub(super) fn parse(tables: DeTable<'_>, reader: &mut Reader<'_>) -> toml::Table {
    let whole = 0..reader.source.text.len();
    let document = Spanned::new(whole, tables.clone());
    match ConfigToml::deserialize(Deserializer::from(document.clone())) {
        Ok(valid) => {
            for wrong in valid.out_of_range() {
                let span = span_of(&tables, &wrong.key).unwrap_or(0..1);
                reader.add_fault(span, &format!("{} is out of range: use {}", wrong.key, wrong.range));
            }
        }
        Err(error) => reader.add_fault(error.span().unwrap_or(0..1), error.message()),
    }
    // The same document was deserialized before.
    let mut set = toml::Table::deserialize(Deserializer::from(document)).unwrap_or_default();
    for (path, key) in PATHS {
        let table = path.iter().try_fold(&mut set, |table, name| table.get_mut(*name)?.as_table_mut());
        let Some(value) = table.and_then(|table| table.get_mut(key)) else { continue };
        let all_absolute = match value {
            Value::Array(paths) => paths.iter_mut().all(make_absolute),
            path => make_absolute(path),
        };
        if !all_absolute {
            let name = format!("{}.{key}", path.join("."));
            let span = span_of(&tables, &name).unwrap_or(0..1);
            reader.add_fault(span, &format!("{name}: expected an absolute path, or one that begins with ~/"));
        }
    }
    set
}

/// Replaces `~` by the home directory that the account of this process has in the list of accounts: the variable `HOME`
/// is the user's choice. Returns whether the path is absolute.
fn make_absolute(value: &mut Value) -> bool {
    let Value::String(path) = value else { return true };
    if let Some(below) = path.strip_prefix("~/")
        && let Some(home) = account_home(geteuid())
    {
        *path = home.join(below).to_string_lossy().into_owned();
    }
    Path::new(path).is_absolute()
}
