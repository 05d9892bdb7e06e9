//! Takes servers out of JSON files, and puts them back.

use lockhouse_config::dialects::{Node, Table, get_path, parse_json};
use lockhouse_policies::{Diagnostics, Source};

use super::{EntryPlace, unchangeable};
use crate::json_edit::{Layout, PropertyValue, insert, remove};

pub(super) fn take_out(source: &Source, places: &[&EntryPlace]) -> Result<String, Diagnostics> {
    let root = parse_json(source)?;
    let mut found: Vec<(&Table, usize)> = Vec::new();
    for place in places {
        let table = root.table().and_then(|table| get_path(table, &place.keys())).and_then(Node::table);
        let table = table.ok_or_else(|| unchangeable(source))?;
        let index = table.iter().position(|(key, _)| key.name == place.name);
        found.push((table, index.ok_or_else(|| unchangeable(source))?));
    }
    // From the end of the file to its beginning, so that the positions of the others stay.
    found.sort_by_key(|(table, index)| std::cmp::Reverse(table[*index].0.at.start));
    let mut text = source.text.clone();
    for (table, index) in found {
        remove(&mut text, table, index);
    }
    Ok(text)
}

/// Inserts the servers at the beginning of their sections, with the text that they have in `original`.
pub(super) fn put_back(
    source: &Source,
    original: &Source,
    places: &[&EntryPlace],
) -> Result<String, Diagnostics> {
    let former = parse_json(original)?;
    let mut changed = Source { path: source.path.clone(), text: source.text.clone() };
    for place in places.iter().rev() {
        let keys = [place.keys(), vec![place.name.as_str()]].concat();
        let entry = former.table().and_then(|table| get_path(table, &keys));
        let entry = entry.ok_or_else(|| unchangeable(source))?;
        if changed.text.trim().is_empty() {
            changed.text = "{}\n".into();
        }
        let root = parse_json(&changed)?;
        let layout = Layout::detect(&changed.text);
        let keys = place.keys();
        let value = PropertyValue { json: &entry.to_json(), text: Some(&original.text[entry.at.clone()]) };
        let inserted = insert(&changed.text, &root, &keys, &place.name, value, &layout);
        changed.text = inserted.map_err(|_| unchangeable(source))?;
    }
    Ok(changed.text)
}
