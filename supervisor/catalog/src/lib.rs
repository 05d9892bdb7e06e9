//! What upstream servers offer, in the forms that code, the model and people read.
//!
//! Everything in a definition comes from an upstream server and is treated as hostile: sizes are bounded, names are
//! checked, and what people see is one line without control characters.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod catalogue;
mod fingerprint;
mod names;
mod search;
mod shapes;
mod signature;
pub mod stubs;
mod types;
mod unmatched;
mod visible;
mod wrapping;

use lockhouse_base::json;
use lockhouse_base::language::Language;
use lockhouse_policies::visible_text;
use lockhouse_protocol::ToolName;
use serde_json::{Value, json};

pub use catalogue::{Catalogue, LeftOut};
pub use fingerprint::digest;
pub use names::{folded, python_name};
pub use search::{Corpus, Hit, rank};
pub use shapes::{Lesson, Shapes};
pub use unmatched::{members, unmatched};
pub use visible::visible_json;

/// Tools of one server that are kept; the rest is dropped with a warning.
pub const TOOLS_MAX: usize = 2_000;
/// Bytes of all definitions of one server, and of one tool, that are kept.
pub const DEFINITIONS_BYTES_MAX: usize = 4 * 1024 * 1024;
const DEFINITION_BYTES_MAX: usize = 256 * 1024;
/// Characters of a description that are kept.
const DESCRIPTION_CHARS_MAX: usize = 8_000;
const SUMMARY_CHARS_MAX: usize = 160;

/// What is told of a tool that may be called when a person agrees.
const ASKS: &str = "a person is asked before each call";
/// And of a type that the server does not promise.
const OBSERVED: &str = "results as observed";

/// One tool of an upstream server.
#[derive(Clone, Debug)]
pub struct Tool {
    /// As the server names it.
    pub name: ToolName,
    /// As code names it.
    pub identifier: String,
    pub description: String,
    /// The first sentence or line of the description.
    pub summary: String,
    /// The server's own JSON. As text: parsed, it would take many times its size for as long as we run.
    definition: Box<str>,
    /// In the schema's order, the required ones first.
    pub parameters: Vec<String>,
    pub required: usize,
    /// What each of the parameters can be given as.
    pub accepted: Box<[Accepted]>,
    /// Whether it takes nothing but `parameters`. JSON Schema permits more unless it is told not to; what servers mean by
    /// a list of properties is that it is the whole list.
    pub closed: bool,
    /// Whether its results are wrapped by its server's library.
    pub wraps: bool,
    /// What the server declares that a call changes.
    pub changes: Changes,
    pub python: String,
    pub typescript: String,
    /// Of the whole definition.
    pub fingerprint: String,
    /// Whether the server says what it answers.
    pub declares_output: bool,
    /// Whether its definition has characters that cannot be seen.
    pub hides: bool,
    /// Why it does not count as accepted by a person, if it does not.
    pub change: Option<ToolChange>,
}

/// How a tool differs from what a person accepted of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChange {
    /// Its definition is another one.
    Definition,
    /// It was not among the tools that were accepted.
    New,
    /// What was accepted cannot be read, or cannot be kept.
    NotComparable,
}

/// Characters of a type in a description.
const TYPE_CHARS_MAX: usize = 240;

/// What one parameter can be given as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its name in Python, where that is another.
    pub keyword: Option<Box<str>>,
    /// Whether `null` is a value of it, and whether an object is.
    pub null: bool,
    pub object: bool,
}

/// What a server says that a tool does to things; only its own word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
}

/// Whether a call changes things, as far as its server declares that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// The tool only reads.
    Nothing,
    /// The tool changes things.
    Something,
    /// The server does not declare it.
    Undeclared,
}

impl Changes {
    /// What is not declared may change something as well.
    pub fn are_possible(self) -> bool {
        self != Self::Nothing
    }
}

impl Claims {
    fn of(annotations: &Value) -> Self {
        let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
        Self { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") }
    }

    fn changes(self) -> Changes {
        match self {
            Self { read_only: Some(true), .. } => Changes::Nothing,
            Self { read_only: None, destructive: None } => Changes::Undeclared,
            Self { .. } => Changes::Something,
        }
    }
}

/// What is told of a tool besides what its definition says.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Whether a person is asked before each call.
    pub asks: bool,
    /// What its results were seen to look like, as a JSON Schema.
    pub observed: Option<Value>,
    /// The language of the program that reads it. None: of signatures and types, both languages.
    pub language: Option<Language>,
}

impl Told {
    fn is_read_in(&self, language: Language) -> bool {
        self.language.is_none_or(|its| its == language)
    }
}

impl Tool {
    /// Read from the definition, since few ever want to know.
    pub fn claims(&self) -> Claims {
        #[derive(Default, serde::Deserialize)]
        struct Outline {
            #[serde(default)]
            annotations: Value,
        }
        let Outline { annotations } = serde_json::from_str(&self.definition).unwrap_or_default();
        Claims::of(&annotations)
    }

    /// Whether the server declares that the tool changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.changes == Changes::Nothing
    }

    /// How the tool is called.
    pub fn signature(&self, language: Language) -> &str {
        match language {
            Language::Python => &self.python,
            Language::Typescript => &self.typescript,
        }
    }

    /// Reads one entry of `tools/list`; `None` for one that cannot be called by any name.
    pub fn from_json(text: &str) -> Option<Self> {
        if text.len() > DEFINITION_BYTES_MAX {
            return None;
        }
        let (raw, values) = json::counted_tree(text.as_bytes(), usize::MAX).ok()?;
        let name = ToolName::new(raw.get("name")?.as_str()?).ok()?;
        let definition = fingerprint::as_compared(text, values, &raw);
        let words = raw.get("description").and_then(Value::as_str).unwrap_or_default();
        let description: String = visible_text(words).chars().take(DESCRIPTION_CHARS_MAX).collect();
        let schema = raw.get("inputSchema").unwrap_or(&Value::Null);
        let input = types::read(schema);
        let inner = raw.get("outputSchema").and_then(wrapping::inner);
        let output = inner.as_ref().or(raw.get("outputSchema")).map(types::read);
        let arguments = input.arguments();
        let parameters: Vec<String> = arguments.fields.iter().map(|field| field.name.clone()).collect();
        let names: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let keywords = names::parameter_identifiers(&names);
        let identifier = names::identifier(name.as_str());
        let summary = summary(&description);
        let signature = signature::Signature {
            identifier: &identifier,
            input: &input,
            arguments: &arguments,
            keywords: &keywords,
            output: output.as_ref(),
        };
        Some(Self {
            python: signature.python(),
            typescript: signature.typescript(),
            changes: Claims::of(raw.get("annotations").unwrap_or(&Value::Null)).changes(),
            fingerprint: fingerprint::fingerprint(&raw),
            declares_output: raw.get("outputSchema").is_some_and(Value::is_object),
            hides: visible::hides(&raw),
            change: None,
            required: arguments.fields.iter().filter(|field| field.required).count(),
            closed: arguments.rest.is_none(),
            accepted: accepted(&input, &arguments, keywords, schema),
            summary,
            name,
            identifier,
            description,
            definition,
            parameters,
            wraps: inner.is_some(),
        })
    }

    /// The tool under another identifier: its own is another tool's.
    fn called(&mut self, identifier: String) {
        for signature in [&mut self.python, &mut self.typescript] {
            signature.replace_range(..self.identifier.len(), &identifier);
        }
        self.identifier = identifier;
    }

    /// The server's own JSON.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// As the in-code modules need it.
    pub fn brief(&self, told: &Told) -> Value {
        let brief = json!({
            "name": self.name.as_str(), "identifier": self.identifier, "parameters": self.parameters,
            "required": self.required, "summary": self.summary,
        });
        self.without_hidden(self.signed(brief, told))
    }

    /// As a search shows it by name.
    pub fn named(&self, server: &str, asks: bool) -> Value {
        let mut named = json!({"server": server, "tool": self.name.as_str(), "summary": self.summary});
        if self.identifier != self.name.as_str() {
            named["identifier"] = self.identifier.as_str().into();
        }
        if asks {
            named["ask"] = true.into();
        }
        named
    }

    /// As a search shows it.
    pub fn found(&self, server: &str, told: &Told) -> Value {
        self.signed(self.named(server, told.asks), told)
    }

    /// With its signatures, and whether a person is asked.
    fn signed(&self, mut shown: Value, told: &Told) -> Value {
        let (mut python, mut typescript) = (self.python.clone(), self.typescript.clone());
        let mut notes: Vec<&str> = Vec::new();
        if let Some(observed) = &told.observed {
            let [in_python, in_typescript] = signature::of_results(observed);
            python.push_str(&format!(" -> {in_python}"));
            typescript.push_str(&format!(": Promise<{in_typescript}>"));
            notes.push(OBSERVED);
        }
        if told.asks {
            shown["ask"] = true.into();
            notes.push(ASKS);
        }
        if !notes.is_empty() {
            let notes = notes.join("; ");
            python.push_str(&format!("  # {notes}"));
            typescript.push_str(&format!("  // {notes}"));
        }
        for (language, signature) in [(Language::Python, python), (Language::Typescript, typescript)] {
            if told.is_read_in(language) {
                shown[language.as_str()] = signature.into();
            }
        }
        shown
    }

    /// Everything, and each parameter with its name in Python and its type in both languages.
    pub fn described(&self, server: &str, told: &Told) -> Value {
        let mut full = self.full(server, told);
        let input = types::read(full.get("inputSchema").unwrap_or(&Value::Null));
        let text = |kind: &types::Type, language| {
            types::Inline { language, shape: &input }.text(kind, TYPE_CHARS_MAX)
        };
        let arguments = input.arguments();
        let parameter = |(field, accepted): (&types::Field, &Accepted)| {
            let mut row = json!({
                "name": field.name,
                "keyword": accepted.keyword.as_deref().unwrap_or(&field.name),
                "required": field.required,
            });
            for language in [Language::Python, Language::Typescript] {
                if told.is_read_in(language) {
                    row[language.as_str()] = text(&field.kind, language).into();
                }
            }
            if !field.description.is_empty() {
                row["description"] = field.description.as_str().into();
            }
            if let Some(default) = &field.default {
                row["default"] = default.clone();
            }
            row
        };
        let parameters = arguments.fields.iter().zip(&self.accepted).map(parameter).collect();
        full["parameters"] = Value::Array(parameters);
        full
    }

    /// The type of results that look like this, for people.
    pub fn returns(observed: &Value) -> String {
        let [python, _] = signature::of_results(observed);
        python
    }

    /// Everything.
    pub fn full(&self, server: &str, told: &Told) -> Value {
        let full = json!({
            "server": server, "name": self.name.as_str(), "identifier": self.identifier,
            "description": self.description, "read_only": self.is_read_only(),
        });
        let mut full = self.signed(full, told);
        let mut definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        for part in ["inputSchema", "outputSchema"] {
            if let Some(schema) = definition.get_mut(part) {
                full[part] = schema.take();
            }
        }
        if let Some(inner) = full.get("outputSchema").and_then(wrapping::inner) {
            full["outputSchema"] = inner;
        }
        if let Some(observed) = &told.observed {
            full["observedOutput"] = observed.clone();
        }
        self.without_hidden(full)
    }

    /// Names of parameters and texts of schemas, of a definition that hides something.
    fn without_hidden(&self, shown: Value) -> Value {
        if self.hides { visible::visible(shown) } else { shown }
    }
}

fn accepted(
    input: &types::Shape,
    arguments: &types::Object,
    keywords: Vec<String>,
    schema: &Value,
) -> Box<[Accepted]> {
    // A word of OpenAPI, which says something to readers and nothing to whoever validates.
    let nullable = |name: &str| {
        let property = schema.get("properties").and_then(|all| all.get(name));
        property.and_then(|property| property.get("nullable")) == Some(&Value::Bool(true))
    };
    let accepted = |(field, keyword): (&types::Field, String)| Accepted {
        null: input.admits(&field.kind, &Value::Null) && !nullable(&field.name),
        object: input.admits(&field.kind, &json!({})),
        keyword: (keyword != field.name).then(|| keyword.into()),
    };
    arguments.fields.iter().zip(keywords).map(accepted).collect()
}

fn summary(description: &str) -> String {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
    sentence.chars().filter(|c| *c != '\t').take(SUMMARY_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_parameters_come_first_and_keep_their_order() {
        let tool = r#"{"name": "a", "inputSchema": {"properties": {"note": {}, "b": {}, "a": {}}, "required": ["a", "b"]}}"#;
        let tool = Tool::from_json(tool).expect("a tool");
        assert_eq!((tool.parameters.join(" "), tool.required), ("b a note".into(), 2));
    }

    #[test]
    fn what_a_call_changes_is_declared_by_either_hint_or_not_at_all() {
        let changes = |annotations: Value| {
            let tool = json!({"name": "a", "annotations": annotations});
            Tool::from_json(&tool.to_string()).expect("a tool").changes
        };
        for undeclared in [Value::Null, json!({}), json!({"title": "A"}), json!({"readOnlyHint": "yes"})] {
            assert_eq!(changes(undeclared.clone()), Changes::Undeclared, "{undeclared}");
        }
        assert_eq!(changes(json!({"readOnlyHint": true})), Changes::Nothing);
        assert_eq!(changes(json!({"readOnlyHint": false})), Changes::Something);
        assert_eq!(changes(json!({"destructiveHint": false})), Changes::Something);
    }

    #[test]
    fn a_tool_without_a_usable_name_is_dropped() {
        assert!(Tool::from_json(r#"{"name": "a b"}"#).is_none());
        assert!(Tool::from_json(r#"{"inputSchema": {}}"#).is_none());
        assert_eq!(
            Tool::from_json(r#"{"name": "list-issues/v2"}"#).map(|tool| tool.identifier),
            Some("list_issues_v2".into())
        );
    }
}
