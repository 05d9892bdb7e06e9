//! What one server offers.

use std::collections::HashMap;
use std::sync::OnceLock;

use lockhouse_protocol::ToolName;
use serde::Deserialize;

use super::search::Index;
use super::{DEFINITIONS_BYTES_MAX, TOOLS_MAX, Tool, ToolChange, names};

/// Tools left out that are named in the log, and how much of each name.
const NAMED_MAX: usize = 3;
const NAME_CHARS_MAX: usize = 40;

/// The tools of one server, as they were when it was asked.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub tools: Vec<Tool>,
    by_name: HashMap<ToolName, usize>,
    /// What a client that loads all definitions would get of them.
    pub definitions_bytes: usize,
    /// Made when it is first searched.
    index: OnceLock<Index>,
}

/// What of a listing is not in the catalogue.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Tools that cannot be used.
    count: usize,
    first: Vec<String>,
    /// Whether there was no room for the rest.
    pub is_full: bool,
}

impl Catalogue {
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    /// Whether both have the same tools in the same words.
    pub fn is_like(&self, other: &Self) -> bool {
        let same = |(one, other): (&Tool, &Tool)| {
            one.definition() == other.definition() && one.change == other.change
        };
        self.tools.len() == other.tools.len() && self.tools.iter().zip(&other.tools).all(same)
    }

    /// The same tools, to be marked anew.
    pub fn again(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            by_name: self.by_name.clone(),
            definitions_bytes: self.definitions_bytes,
            index: OnceLock::new(),
        }
    }

    /// Whether a person has accepted all of them as they are.
    pub fn is_accepted(&self) -> bool {
        self.tools.iter().all(|tool| tool.change.is_none())
    }

    /// How many tools differ in this way from what a person accepted.
    pub fn count(&self, change: ToolChange) -> usize {
        self.tools.iter().filter(|tool| tool.change == Some(change)).count()
    }

    /// What a search goes through. The first time takes milliseconds for hundreds of tools.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self.tools.iter()))
    }

    /// Of the definitions, each a piece of JSON.
    pub fn of<'a>(definitions: impl Iterator<Item = &'a str>) -> (Self, LeftOut) {
        let (mut catalogue, mut left_out) = (Self::default(), LeftOut::default());
        catalogue.add(definitions, &mut left_out);
        (catalogue, left_out)
    }

    /// Adds tools while there is room.
    pub fn add<'a>(&mut self, definitions: impl Iterator<Item = &'a str>, left_out: &mut LeftOut) {
        self.index = OnceLock::new();
        for definition in definitions {
            self.definitions_bytes += definition.len();
            if self.tools.len() == TOOLS_MAX || self.definitions_bytes > DEFINITIONS_BYTES_MAX {
                left_out.is_full = true;
                break;
            }
            match Tool::from_json(definition) {
                Some(tool) if !self.by_name.contains_key(&tool.name) => {
                    self.by_name.insert(tool.name.clone(), self.tools.len());
                    self.tools.push(tool);
                }
                _ => left_out.add(definition),
            }
        }
        self.name_tools();
    }

    /// Gives each tool an identifier of its own.
    fn name_tools(&mut self) {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let identifiers = names::identifiers(&names);
        for (tool, identifier) in self.tools.iter_mut().zip(identifiers) {
            if tool.identifier != identifier {
                tool.called(identifier);
            }
        }
    }

    /// The tool that is meant by a name: as the server writes it, as code does, or in another form if only one is like it.
    pub fn meant(&self, name: &str) -> Option<&Tool> {
        let is_named = |tool: &&Tool| tool.name.as_str() == name;
        let is_identified = |tool: &&Tool| tool.identifier == name;
        let tools = || self.tools.iter();
        tools().find(is_named).or_else(|| tools().find(is_identified)).or_else(|| {
            let wanted = names::folded(name);
            let mut alike = tools().filter(|tool| names::folded(tool.name.as_str()) == wanted);
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    /// Keeps the tools that `admitted` names.
    pub fn retain(&mut self, admitted: impl Fn(&str) -> bool) {
        self.index = OnceLock::new();
        self.tools.retain(|tool| admitted(tool.name.as_str()));
        self.by_name =
            self.tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
    }
}

impl LeftOut {
    fn add(&mut self, definition: &str) {
        #[derive(Deserialize)]
        struct Named {
            name: Option<String>,
        }
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            let named: Option<Named> = serde_json::from_str(definition).ok();
            let name = named.and_then(|named| named.name).unwrap_or_default();
            self.first.push(format!("{:?}", name.chars().take(NAME_CHARS_MAX).collect::<String>()));
        }
    }

    /// In words for a person, harmlessly.
    pub fn told(&self) -> Option<String> {
        let (count, first) = (self.count, self.first.join(", "));
        let more = if count > self.first.len() { ", …" } else { "" };
        (count > 0).then(|| {
            format!(
                "left out {count} tools that have no usable name of their own or are too large: {first}{more}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_once_and_harmlessly() {
        let names = ["a", "a", "\\u001b]0;x\\u202e", "b c", "", "d"];
        let definitions = names.map(|name| format!("{{\"name\": \"{name}\"}}"));
        let (catalogue, left_out) = Catalogue::of(definitions.iter().map(String::as_str));
        assert_eq!(catalogue.tools.len(), 2);
        assert!(!left_out.is_full);
        let told = left_out.told().expect("words");
        assert!(told.contains("left out 4 tools"), "{told}");
        assert!(told.ends_with(r#""a", "\u{1b}]0;x\u{202e}", "b c", …"#), "{told}");
        assert_eq!(LeftOut::default().told(), None);
    }

    #[test]
    fn tools_are_found_by_name_after_others_are_taken_away() {
        let definitions = ["a", "b", "c"].map(|name| format!("{{\"name\": \"{name}\"}}"));
        let (mut catalogue, _) = Catalogue::of(definitions.iter().map(String::as_str));
        catalogue.retain(|name| name != "a");
        let found =
            |name| catalogue.tool(&ToolName::new(name).expect("a name")).map(|tool| tool.name.as_str());
        assert_eq!([found("a"), found("b"), found("c")], [None, Some("b"), Some("c")]);
    }

    #[test]
    fn more_tools_than_are_kept_are_told() {
        let definitions: Vec<String> = (0..=TOOLS_MAX).map(|n| format!("{{\"name\": \"t{n}\"}}")).collect();
        let (catalogue, left_out) = Catalogue::of(definitions.iter().map(String::as_str));
        assert_eq!((catalogue.tools.len(), left_out.is_full), (TOOLS_MAX, true));
    }
}
