//! The catalogue of the tools of one upstream server.

use std::collections::HashMap;
use std::sync::OnceLock;

use lockhouse_protocol::ToolName;
use serde::Deserialize;

use super::search::Index;
use super::{DEFINITIONS_BYTES_MAX, TOOLS_MAX, Tool, ToolChange, identifiers, summary};

/// Maximum number of skipped tools whose names are logged.
const NAMED_MAX: usize = 3;
/// Maximum length of a skipped tool's name in the log, in characters.
const NAME_CHARS_MAX: usize = 40;

/// A sentence with which most descriptions of a server's tools begin is omitted from the summaries if at least this
/// number of tools share it, because it does not tell the tools apart.
const SHARING_MIN: usize = 3;

/// The tools of one upstream server, as its last `tools/list` returned them.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub tools: Vec<Tool>,
    by_name: HashMap<ToolName, usize>,
    /// The total size, in bytes, of the definitions that were added, including those of skipped tools. An AI client
    /// that loads all definitions would receive this number of bytes.
    pub definitions_bytes: usize,
    /// The search index, which is built at the first search.
    index: OnceLock<Index>,
    /// For each word with which a program can name a tool, the index of the tool in `tools`; `None` if the word could
    /// mean several tools. Built at the first lookup.
    by_word: OnceLock<HashMap<String, Option<usize>>>,
}

/// The tools of a server's `tools/list` that are not in the catalogue.
#[derive(Debug, Default)]
pub struct SkippedTools {
    /// The number of tools whose definition cannot be used, or whose name another tool has already.
    count: usize,
    first_names: Vec<String>,
    /// Whether further tools are missing because the catalogue has reached its maximum number of tools or
    /// bytes.
    pub is_full: bool,
}

impl Catalogue {
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    /// Returns whether two catalogues have the same tool definitions in the same order, and each tool has the same
    /// difference from the definition that a user accepted.
    pub fn has_same_tools(&self, other: &Self) -> bool {
        let same = |(one, other): (&Tool, &Tool)| {
            one.definition() == other.definition() && one.change == other.change
        };
        self.tools.len() == other.tools.len() && self.tools.iter().zip(&other.tools).all(same)
    }

    /// Copies the tools without the search index, so that the copy can be compared again with the definitions that a
    /// user accepted, after these have changed.
    pub fn clone_tools(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            by_name: self.by_name.clone(),
            definitions_bytes: self.definitions_bytes,
            index: OnceLock::new(),
            by_word: OnceLock::new(),
        }
    }

    /// Returns whether a user has accepted the current definition of every tool.
    pub fn is_accepted(&self) -> bool {
        self.tools.iter().all(|tool| tool.change.is_none())
    }

    /// Returns the number of tools whose [`Tool::change`] is `change`: how a tool differs from the definition that a
    /// user accepted.
    pub fn count(&self, change: ToolChange) -> usize {
        self.tools.iter().filter(|tool| tool.change == Some(change)).count()
    }

    /// Returns the search index. The first call builds it, which takes milliseconds for hundreds of tools.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.tools.iter()))
    }

    /// Returns the tool that a word in a program names: a tool with this identifier or name, else the only tool whose
    /// name differs from the word just in case and punctuation. Returns `None` if there is no such tool.
    pub fn tool_for_word(&self, word: &str) -> Option<&Tool> {
        let by_word = self.by_word.get_or_init(|| self.words());
        let index = by_word.get(word).or_else(|| by_word.get(&identifiers::normalized(word)))?;
        index.map(|index| &self.tools[index])
    }

    fn words(&self) -> HashMap<String, Option<usize>> {
        let mut words: HashMap<String, Option<usize>> = HashMap::new();
        for (index, tool) in self.tools.iter().enumerate() {
            let form = identifiers::normalized(tool.name.as_str());
            words.entry(form).and_modify(|other| *other = None).or_insert(Some(index));
        }
        // Exact names and identifiers have precedence over other forms.
        for (index, tool) in self.tools.iter().enumerate() {
            words.insert(tool.name.as_str().to_owned(), Some(index));
        }
        for (index, tool) in self.tools.iter().enumerate() {
            words.insert(tool.identifier.clone(), Some(index));
        }
        words
    }

    /// Creates a catalogue from tool definitions, each a JSON text. Also returns the tools that were skipped.
    pub fn from_definitions<'a>(definitions: impl Iterator<Item = &'a str>) -> (Self, SkippedTools) {
        let (mut catalogue, mut skipped) = (Self::default(), SkippedTools::default());
        catalogue.add(definitions, &mut skipped);
        (catalogue, skipped)
    }

    /// Adds tools from their definitions, each a JSON text, until the maximum number of tools or bytes is reached.
    /// Counts in `skipped` the tools whose definition cannot be used, or whose name another tool has already.
    pub fn add<'a>(&mut self, definitions: impl Iterator<Item = &'a str>, skipped: &mut SkippedTools) {
        (self.index, self.by_word) = (OnceLock::new(), OnceLock::new());
        for definition in definitions {
            self.definitions_bytes += definition.len();
            if self.tools.len() == TOOLS_MAX || self.definitions_bytes > DEFINITIONS_BYTES_MAX {
                skipped.is_full = true;
                break;
            }
            match Tool::from_json(definition) {
                Some(tool) if !self.by_name.contains_key(&tool.name) => {
                    self.by_name.insert(tool.name.clone(), self.tools.len());
                    self.tools.push(tool);
                }
                _ => skipped.add(definition),
            }
        }
        self.assign_identifiers();
        self.omit_shared_sentences();
    }

    /// If most descriptions begin with the same sentence, such as one about the server, omits the sentence
    /// from the tools' summaries.
    fn omit_shared_sentences(&mut self) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for tool in &self.tools {
            *counts.entry(summary::first_sentence(&tool.description)).or_default() += 1;
        }
        let is_shared = |count: usize| count >= SHARING_MIN && count * 2 > self.tools.len();
        let shared = counts.into_iter().find(|(sentence, count)| !sentence.is_empty() && is_shared(*count));
        let Some(shared) = shared.map(|(sentence, _)| sentence.to_owned()) else { return };
        for tool in &mut self.tools {
            let rest = tool.description.trim_start().strip_prefix(&shared).map(summary::summary);
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                tool.summary = rest;
            }
        }
    }

    /// Assigns a distinct identifier to each tool.
    fn assign_identifiers(&mut self) {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let identifiers = identifiers::identifiers(&names);
        for (tool, identifier) in self.tools.iter_mut().zip(identifiers) {
            if tool.identifier != identifier {
                tool.set_identifier(identifier);
            }
        }
    }

    /// Returns the tool with this name or, if there is none, with this identifier. If there is neither, returns the
    /// only tool whose name differs from `name` just in case and punctuation; `None` if there is no such tool or more
    /// than one.
    pub fn resolve(&self, name: &str) -> Option<&Tool> {
        let is_named = |tool: &&Tool| tool.name.as_str() == name;
        let is_identified = |tool: &&Tool| tool.identifier == name;
        let tools = || self.tools.iter();
        tools().find(is_named).or_else(|| tools().find(is_identified)).or_else(|| {
            let normalized = identifiers::normalized(name);
            let mut alike = tools().filter(|tool| identifiers::normalized(tool.name.as_str()) == normalized);
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    /// Removes the tools for whose names `is_kept` returns false.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        (self.index, self.by_word) = (OnceLock::new(), OnceLock::new());
        self.tools.retain(|tool| is_kept(tool.name.as_str()));
        self.by_name =
            self.tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
    }
}

impl SkippedTools {
    fn add(&mut self, definition: &str) {
        #[derive(Deserialize)]
        struct Named {
            name: Option<String>,
        }
        self.count += 1;
        if self.first_names.len() < NAMED_MAX {
            let named: Option<Named> = serde_json::from_str(definition).ok();
            let name = named.and_then(|named| named.name).unwrap_or_default();
            self.first_names.push(format!("{:?}", name.chars().take(NAME_CHARS_MAX).collect::<String>()));
        }
    }

    /// Returns a log message about the skipped tools, without control characters. Returns `None` if there are none.
    pub fn message(&self) -> Option<String> {
        let (count, first) = (self.count, self.first_names.join(", "));
        let more = if count > self.first_names.len() { ", …" } else { "" };
        (count > 0).then(|| {
            format!(
                "skipped {count} tools that have no usable, distinct name or are too large: {first}{more}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tools_are_reported_without_control_characters() {
        let names = ["a", "a", "\\u001b]0;x\\u202e", "b  c", "", "d"];
        let definitions = names.map(|name| format!("{{\"name\": \"{name}\"}}"));
        let (catalogue, skipped) = Catalogue::from_definitions(definitions.iter().map(String::as_str));
        assert_eq!(catalogue.tools.len(), 2);
        assert!(!skipped.is_full);
        let message = skipped.message().expect("words");
        assert!(message.contains("skipped 4 tools"), "{message}");
        assert!(message.ends_with(r#""a", "\u{1b}]0;x\u{202e}", "b  c", …"#), "{message}");
        assert_eq!(SkippedTools::default().message(), None);
    }

    #[test]
    fn words_of_programs_name_tools() {
        let definitions = ["list_issues", "list-files", "getUser", "get_user"]
            .map(|name| format!("{{\"name\": \"{name}\"}}"));
        let (catalogue, _) = Catalogue::from_definitions(definitions.iter().map(String::as_str));
        for (word, expected) in [
            ("list_issues", Some("list_issues")),
            ("listIssues", Some("list_issues")),
            ("list_files", Some("list-files")),
            ("list-files", Some("list-files")),
            ("getUser", Some("getUser")),
            ("GetUser", None),
            ("issues", None),
        ] {
            assert_eq!(catalogue.tool_for_word(word).map(|tool| tool.name.as_str()), expected, "{word}");
        }
    }

    #[test]
    fn tools_are_found_after_others_are_removed() {
        let definitions = ["a", "b", "c"].map(|name| format!("{{\"name\": \"{name}\"}}"));
        let (mut catalogue, _) = Catalogue::from_definitions(definitions.iter().map(String::as_str));
        catalogue.retain(|name| name != "a");
        let found =
            |name| catalogue.tool(&ToolName::new(name).expect("a name")).map(|tool| tool.name.as_str());
        assert_eq!([found("a"), found("b"), found("c")], [None, Some("b"), Some("c")]);
    }

    #[test]
    fn a_sentence_that_most_descriptions_share_is_omitted() {
        let definition = |(name, words): (&str, &str)| {
            format!(
                r#"{{"name": "{name}", "description": "This belongs to the tickets, e.g. all. {words}"}}"#
            )
        };
        let definitions =
            [("a", "Opens one."), ("b", "Closes one."), ("c", ""), ("d", "Lists.")].map(definition);
        let summaries = |definitions: &[String]| {
            let (catalogue, _) = Catalogue::from_definitions(definitions.iter().map(String::as_str));
            catalogue.tools.into_iter().map(|tool| tool.summary).collect::<Vec<_>>()
        };
        let shared = "This belongs to the tickets, e.g. all.";
        assert_eq!(summaries(&definitions), ["Opens one.", "Closes one.", shared, "Lists."]);
        assert_eq!(summaries(&definitions[..2]), [shared, shared]);
    }

    #[test]
    fn tools_above_the_limit_are_reported() {
        let definitions: Vec<String> = (0..=TOOLS_MAX).map(|n| format!("{{\"name\": \"t{n}\"}}")).collect();
        let (catalogue, skipped) = Catalogue::from_definitions(definitions.iter().map(String::as_str));
        assert_eq!((catalogue.tools.len(), skipped.is_full), (TOOLS_MAX, true));
    }
}
