//! Inverted index of the words in the tool definitions of one upstream server. It is built once for each catalogue.

use std::collections::HashMap;

use serde_json::Value;

use super::super::Tool;
use super::tokenizer::{split_name, split_text};

/// The number of indexed fields of a tool: name, summary, description, parameter names, and parameter descriptions with
/// enumerated values.
pub(super) const FIELDS: usize = 5;
const NAME: usize = 0;
const PARAMETERS: usize = 3;
/// Maximum number of words that are indexed of each field, so that long texts do not make searches slower.
const WORDS_MAX: [usize; FIELDS] = [24, 40, 160, 64, 160];

/// How often a word occurs in each field of one tool.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) tool: u16,
    pub(super) counts: [u8; FIELDS],
}

#[derive(Debug, Default)]
pub struct Index {
    pub(super) postings: HashMap<Box<str>, Vec<Posting>>,
    /// The number of indexed words in each field of each tool.
    pub(super) lengths: Vec<[u8; FIELDS]>,
    /// The positions of the tools in the catalogue, by their names in lower case without punctuation.
    pub(super) names: HashMap<Box<str>, Vec<u16>>,
    /// For each tool, its position in the alphabetical order of names.
    pub(super) order: Vec<u16>,
    /// For each tool, whether it is deprecated.
    pub(super) deprecated: Vec<bool>,
    /// The words of tool and parameter names. Unknown words of a query are compared with them to find
    /// misspellings.
    pub(super) vocabulary: Vec<Box<str>>,
}

impl Index {
    pub fn new<'a>(tools: impl Iterator<Item = &'a Tool>) -> Self {
        let mut index = Self::default();
        let mut names = Vec::new();
        for (number, tool) in tools.take(usize::from(u16::MAX)).enumerate() {
            index.add(number as u16, tool);
            names.push((tool.name.as_str(), number));
        }
        names.sort_unstable();
        index.order = vec![0; names.len()];
        for ((_, number), position) in names.into_iter().zip(0..) {
            index.order[number] = position;
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
        let values = parameter_texts(&definition);
        let name = searched.name.as_str();
        let texts = [name, &searched.summary, &searched.description, &parameters, &values];
        let mut lengths = [0; FIELDS];
        for (field, text) in texts.into_iter().enumerate() {
            let split = if matches!(field, NAME | PARAMETERS) { split_name } else { split_text };
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
        self.deprecated.push(searched.is_deprecated);
        self.names.entry(normalize_name(name).into()).or_default().push(tool);
    }
}

/// Returns the descriptions and enumerated values of a tool's parameters as one text.
fn parameter_texts(definition: &Value) -> String {
    let mut texts: Vec<&str> = Vec::new();
    let properties = definition.pointer("/inputSchema/properties").and_then(Value::as_object);
    for parameter in properties.into_iter().flat_map(|properties| properties.values()) {
        texts.extend(parameter.get("description").and_then(Value::as_str));
        let known = parameter.get("enum").and_then(Value::as_array);
        texts.extend(known.into_iter().flatten().filter_map(Value::as_str));
    }
    texts.join(" ")
}

/// Returns the letters and digits of a name in lower case, for comparison of complete names.
pub(super) fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(256).collect()
}
