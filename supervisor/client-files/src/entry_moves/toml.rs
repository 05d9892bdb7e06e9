//! Takes servers out of TOML files, and puts them back.

use lockhouse_config::toml_tables;
use lockhouse_policies::{Diagnostics, Source};
use toml_edit::{Item, Table};

use super::{EntryPlace, unchangeable};

pub(super) fn take_out(source: &Source, places: &[&EntryPlace]) -> Result<String, Diagnostics> {
    let mut document = toml_tables::parse(source)?;
    for place in places {
        let [section] = place.section.as_slice() else { return Err(unchangeable(source)) };
        toml_tables::remove(&mut document, section, &place.name);
    }
    Ok(document.to_string())
}

/// Inserts the servers after the other servers, with the comments above their tables.
pub(super) fn put_back(
    source: &Source,
    original: &Source,
    places: &[&EntryPlace],
) -> Result<String, Diagnostics> {
    let former = toml_tables::parse(original)?;
    let mut document = toml_tables::parse(source)?;
    let is_empty = source.text.trim().is_empty();
    for place in places {
        let [section] = place.section.as_slice() else { return Err(unchangeable(source)) };
        let entry = toml_tables::find(&former, &[section.as_str(), &place.name]).cloned();
        let mut entry = entry.ok_or_else(|| unchangeable(source))?;
        let mut missing = Table::new();
        missing.set_implicit(true);
        let servers = document.entry(section).or_insert(Item::Table(missing));
        if servers.is_inline_table() {
            entry = Item::Value(entry.into_value().map_err(|_| unchangeable(source))?);
        }
        if let Item::Table(table) = &mut entry {
            forget_positions(table);
            let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            if !is_empty && !prefix.starts_with('\n') {
                let prefix = format!("\n{prefix}");
                table.decor_mut().set_prefix(prefix);
            }
        }
        let Some(servers) = servers.as_table_like_mut() else { return Err(unchangeable(source)) };
        servers.insert(&place.name, entry);
    }
    Ok(document.to_string())
}

/// Lets the table and its subtables take their place in the file from their parents. Their positions are those of
/// another file.
fn forget_positions(table: &mut Table) {
    table.set_position(None);
    for (_, item) in table.iter_mut() {
        if let Item::Table(table) = item {
            forget_positions(table);
        }
    }
}
