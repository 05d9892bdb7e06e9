//! The words of one server's tools, and where they are. Made once for each catalogue.

use std::collections::HashMap;

use serde_json::Value;

use super::super::Tool;
use super::words::{of_name, of_text};

/// Where a word can be: name, summary, description, parameters, what is said of them.
pub(super) const FIELDS: usize = 5;
const NAME: usize = 0;
const PARAMETERS: usize = 3;
/// Words of each that are kept: a search costs the same for a server that writes novels.
const WORDS_MAX: [usize; FIELDS] = [24, 40, 160, 64, 160];

/// How often a word is in each text of a tool.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) tool: u16,
    pub(super) counts: [u8; FIELDS],
}

#[derive(Debug, Default)]
pub struct Index {
    pub(super) postings: HashMap<Box<str>, Vec<Posting>>,
    /// The number of words in each text of each tool.
    pub(super) lengths: Vec<[u8; FIELDS]>,
    /// Names without what joins their words.
    pub(super) names: HashMap<Box<str>, Vec<u16>>,
    /// The place of each tool in the order of their names.
    pub(super) order: Vec<u16>,
    /// Words of names and parameters, for those that were written wrongly.
    pub(super) vocabulary: Vec<Box<str>>,
}

impl Index {
    pub fn of<'a>(tools: impl Iterator<Item = &'a Tool>) -> Self {
        let mut index = Self::default();
        let mut names = Vec::new();
        for (number, tool) in tools.take(usize::from(u16::MAX)).enumerate() {
            index.add(number as u16, tool);
            names.push((tool.name.as_str(), number));
        }
        names.sort_unstable();
        index.order = vec![0; names.len()];
        for ((_, number), place) in names.into_iter().zip(0..) {
            index.order[number] = place;
        }
        let named = |posting: &Posting| posting.counts[NAME] > 0 || posting.counts[PARAMETERS] > 0;
        let words = index.postings.iter().filter(|(_, postings)| postings.iter().any(named));
        index.vocabulary = words.map(|(word, _)| word.clone()).collect();
        index.vocabulary.sort_unstable();
        index
    }

    fn add(&mut self, tool: u16, searched: &Tool) {
        let definition: Value = serde_json::from_str(searched.definition()).unwrap_or_default();
        let parameters = searched.parameters.join(" ");
        let values = values(&definition);
        let name = searched.name.as_str();
        let texts = [name, &searched.summary, &searched.description, &parameters, &values];
        let mut lengths = [0; FIELDS];
        for (field, text) in texts.into_iter().enumerate() {
            let split = if matches!(field, NAME | PARAMETERS) { of_name } else { of_text };
            let words = split(text, WORDS_MAX[field]);
            lengths[field] = words.len() as u8;
            for word in words {
                let postings = self.postings.entry(word.into_boxed_str()).or_default();
                if postings.last().is_none_or(|last| last.tool != tool) {
                    postings.push(Posting { tool, counts: [0; FIELDS] });
                }
                if let Some(last) = postings.last_mut() {
                    last.counts[field] = last.counts[field].saturating_add(1);
                }
            }
        }
        self.lengths.push(lengths);
        self.names.entry(bare(name).into()).or_default().push(tool);
    }
}

/// What is said of the parameters, and the values that they may have.
fn values(definition: &Value) -> String {
    let mut texts: Vec<&str> = Vec::new();
    let properties = definition.pointer("/inputSchema/properties").and_then(Value::as_object);
    for parameter in properties.into_iter().flat_map(|properties| properties.values()) {
        texts.extend(parameter.get("description").and_then(Value::as_str));
        let known = parameter.get("enum").and_then(Value::as_array);
        texts.extend(known.into_iter().flatten().filter_map(Value::as_str));
    }
    texts.join(" ")
}

/// A name as it is compared whole.
pub(super) fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(256).collect()
}
