//! Takes MCP servers out of an AI client's configuration file, and puts them back. Everything else in the file stays.
//!
//! Each change is made in the text of the file. Before it is returned, the new text is parsed and compared with what the
//! file must contain, so that a change that would lose a setting is an error.

mod json;
mod toml;
mod yaml;

use lockhouse_config::dialects::{Node, Syntax, parse_as};
use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::AiClient;

/// Where the entry of a server is in an AI client's configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPlace {
    /// The keys of the tables that contain the entry, outermost first.
    pub section: Vec<String>,
    pub name: String,
}

/// A file into which servers were put back.
pub struct PutBack {
    pub text: String,
    /// Servers that were not put back, since the file has another server of the same name.
    pub taken: Vec<EntryPlace>,
}

/// Removes servers from the text of an AI client's configuration file. Servers that the file does not have are skipped.
///
/// # Errors
/// The file cannot be parsed, or has a form in which the servers cannot be removed alone.
pub fn take_out(client: AiClient, source: &Source, places: &[EntryPlace]) -> Result<String, Diagnostics> {
    let before = tree(client, source)?;
    let present: Vec<&EntryPlace> = places.iter().filter(|place| place.find(&before).is_some()).collect();
    let mut expected = before.clone();
    present.iter().for_each(|place| place.remove_from(&mut expected));
    let text = match syntax(client) {
        Syntax::Json => json::take_out(source, &present)?,
        Syntax::Toml => toml::take_out(source, &present)?,
        Syntax::Yaml => yaml::take_out(source, &present)?,
    };
    checked(client, source, text, expected, places)
}

/// Inserts servers of the file `original` into the text of the same file as it is now. Servers that the file has
/// already are skipped.
///
/// # Errors
/// One of the files cannot be parsed, or the file has a form in which servers cannot be inserted.
pub fn put_back(
    client: AiClient,
    source: &Source,
    original: &Source,
    places: &[EntryPlace],
) -> Result<PutBack, Diagnostics> {
    let (present, former) = (tree(client, source)?, tree(client, original)?);
    let (mut expected, mut missing, mut taken) = (present.clone(), Vec::new(), Vec::new());
    for place in places {
        match (place.find(&present), place.find(&former)) {
            (Some(now), former) if former.is_none_or(|former| former == now) => {}
            (Some(_), _) => taken.push(place.clone()),
            (None, Some(former)) => {
                place.insert_into(&mut expected, former.clone());
                missing.push(place);
            }
            (None, None) => {}
        }
    }
    let text = match syntax(client) {
        Syntax::Json => json::put_back(source, original, &missing)?,
        Syntax::Toml => toml::put_back(source, original, &missing)?,
        Syntax::Yaml => yaml::put_back(source, original, &missing)?,
    };
    Ok(PutBack { text: checked(client, source, text, expected, places)?, taken })
}

impl EntryPlace {
    /// Whether the file of the client has an entry at this place. `false` if the file cannot be parsed.
    pub fn exists_in(&self, client: AiClient, source: &Source) -> bool {
        tree(client, source).is_ok_and(|root| self.find(&root).is_some())
    }

    /// Whether both files have the same entry at this place, or none.
    pub fn is_same_in(&self, client: AiClient, one: &Source, other: &Source) -> bool {
        match (tree(client, one), tree(client, other)) {
            (Ok(one), Ok(other)) => self.find(&one) == self.find(&other),
            _ => false,
        }
    }

    fn find<'r>(&self, root: &'r Json) -> Option<&'r Json> {
        self.section.iter().chain([&self.name]).try_fold(root, |table, key| table.get(key))
    }

    fn table_in<'r>(&self, root: &'r mut Json) -> Option<&'r mut Map<String, Json>> {
        self.section.iter().try_fold(root, |table, key| table.get_mut(key))?.as_object_mut()
    }

    fn remove_from(&self, root: &mut Json) {
        if let Some(table) = self.table_in(root) {
            table.remove(&self.name);
        }
    }

    fn insert_into(&self, root: &mut Json, value: Json) {
        let mut table = root;
        for key in &self.section {
            let Json::Object(outer) = table else { return };
            table = outer.entry(key.clone()).or_insert(Json::Null);
            // A key of YAML without a value is an empty section.
            if table.is_null() {
                *table = Json::Object(Map::new());
            }
        }
        if let Json::Object(table) = table {
            table.insert(self.name.clone(), value);
        }
    }

    fn keys(&self) -> Vec<&str> {
        self.section.iter().map(String::as_str).collect()
    }
}

pub(super) fn syntax(client: AiClient) -> Syntax {
    match client {
        AiClient::Codex => Syntax::Toml,
        AiClient::Continue => Syntax::Yaml,
        _ => Syntax::Json,
    }
}

/// Parses the file into JSON values. An empty file is an empty object.
fn tree(client: AiClient, source: &Source) -> Result<Json, Diagnostics> {
    match parse_as(source, syntax(client)).map(|root: Node| root.to_json())? {
        Json::Null => Ok(Json::Object(Map::new())),
        root => Ok(root),
    }
}

/// Returns `text`, the new text of the file `source`, if it contains exactly the values of `expected`. A section that
/// has no servers left may be present or absent.
fn checked(
    client: AiClient,
    source: &Source,
    text: String,
    mut expected: Json,
    places: &[EntryPlace],
) -> Result<String, Diagnostics> {
    let changed = Source { path: source.path.clone(), text };
    let mut found = tree(client, &changed).unwrap_or(Json::Null);
    for place in places {
        for root in [&mut found, &mut expected] {
            remove_empty_section(root, &place.section);
        }
    }
    if found == expected { Ok(changed.text) } else { Err(unchangeable(source)) }
}

fn remove_empty_section(root: &mut Json, section: &[String]) {
    let Some((last, outer)) = section.split_last() else { return };
    let table = outer.iter().try_fold(root, |table, key| table.get_mut(key));
    let Some(Json::Object(table)) = table else { return };
    if table.get(last).is_some_and(|servers| servers.is_null() || *servers == Json::Object(Map::new())) {
        table.remove(last);
    }
}

/// The error for a file whose servers cannot be changed without a change of other settings.
fn unchangeable(source: &Source) -> Diagnostics {
    let label = "its list of servers has a form in which single servers cannot be changed alone";
    let fault = Diagnostic::new(source, None, "the file cannot be changed", label);
    fault.with_help("change it by hand; it is still as it was").into()
}

#[cfg(test)]
mod tests;
