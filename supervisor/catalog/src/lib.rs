//! The catalogue of the tools of upstream servers, in the forms that code, models and people read.
//!
//! # Parts
//!
//! - [`Catalogue`] has the tools of one server, made from its definitions. [`Tool`] is one of them.
//! - `types.rs` converts JSON Schema to types of Python and TypeScript, `signature.rs` writes them on one line for
//!   models, and [`stubs`] writes files for type checkers.
//! - `identifiers.rs` has the rules for names of functions and parameters. docs/code.md documents them.
//! - [`rank`] searches tools by words and names, with word lists in `search/word_lists.toml`.
//! - `summary.rs` selects the sentences of a description that a list shows. [`ServerOverview`] is the list of servers
//!   in the description of `run_code`.
//! - [`ResultShapes`] learns field names and types from results of tools without an output schema.
//! - [`tools_digest`] and `fingerprint.rs`: a fingerprint is a SHA-256 that does not depend on the order of keys. Pins
//!   use it.
//! - [`make_json_visible`] replaces invisible characters, [`is_named_as_read`] recognises names of tools that only
//!   read.
//!
//! # Invariants
//!
//! - Nothing here calls a server, knows a connection or decides about a call.
//! - No definition is trusted: sizes are limited before parsing, and a schema that refers to itself or branches without
//!   end is cut to `unknown`.
//! - No text of a definition reaches a person or a model with control or invisible characters.
//! - No value of a result is stored. A shape has field names and types alone.
//! - No tool is dropped silently: [`SkippedTools`] says which and why.
//!
//! # Decisions
//!
//! - A definition is kept as JSON text, because a parsed tree takes many times as much memory.
//! - The search has no index library: a catalogue has at most a few thousand tools, and the ranking (fields with
//!   weights, word stems, synonyms) decides about the quality.
//! - Tokens are estimated without the vocabulary of a tokenizer, which takes megabytes. The estimate is rarely too low.
//!
//! # Limits
//!
//! A server has at most [`TOOLS_MAX`] tools and [`DEFINITIONS_BYTES_MAX`] bytes of definitions; further ones are
//! dropped with a warning. A single definition has at most 256 KiB.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod fingerprint;
mod hidden_text;
mod identifiers;
mod reading_names;
mod result_wrapper;
mod search;
mod server_overview;
mod shapes;
mod signature;
pub mod stubs;
mod summary;
mod token_estimate;
mod tool_catalogue;
mod types;
mod unmatched_rules;

use lockhouse_base::json;
use lockhouse_policies::visible_text;
use lockhouse_protocol::{Language, ToolName};
use serde_json::{Value, json};

pub use fingerprint::tools_digest;
pub use hidden_text::make_json_visible;
pub use identifiers::{normalized, python_name};
pub use reading_names::is_named_as_read;
pub use search::{Corpus, Hit, rank};
pub use server_overview::{OverviewState, ServerOverview, all_signatures, server_names};
pub use shapes::{ResultShapes, ShapeObservation};
pub use token_estimate::estimated_tokens;
pub use tool_catalogue::{Catalogue, SkippedTools};
pub use unmatched_rules::{tool_members, unmatched_rules};

/// Maximum number of tools of one upstream server. Further tools are dropped with a warning.
/// Bound: tools and searches.
pub const TOOLS_MAX: usize = 2_000;
/// Maximum total size of the tool definitions of one upstream server, in bytes. Further tools are dropped
/// with a warning.
/// Bound: tools and searches.
pub const DEFINITIONS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum size of one tool definition, in bytes. A tool with a larger definition is skipped.
/// Bound: tools and searches.
const DEFINITION_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of [`Tool::description`], in characters. The rest of a longer description is dropped.
/// Bound: tools and searches.
const DESCRIPTION_CHARS_MAX: usize = 8_000;

/// The result type in the signature of a tool that has no output schema and of which no earlier results
/// were observed.
const UNKNOWN_TYPE: &str = "unknown";
/// The result type, in Python and in TypeScript, in the signature of a tool whose server only wraps text, and of which no
/// earlier results were observed.
const TEXT_TYPES: [&str; 2] = ["str", "string"];
/// The note in the signature of a tool with this result type, unless the configuration keeps its text.
const PARSED_TEXT_NOTE: &str = "parsed if it is JSON";
/// The note in the signature of a tool whose calls require approval.
const APPROVAL_NOTE: &str = "a person is asked before each call";
/// The note in a signature whose result type was inferred from the results of earlier calls, because the
/// tool has no output schema.
const OBSERVED_NOTE: &str = "observed";
/// The note in a signature of a tool without an output schema whose earlier calls all returned text.
const OBSERVED_TEXT_NOTE: &str = "text, observed";

/// A tool of an upstream server.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The tool's name, as its upstream server defines it.
    pub name: ToolName,
    /// The name of the tool's function in programs.
    pub identifier: String,
    pub description: String,
    /// The first sentence of the tool's description and, if there is room, the description's sentence about the result.
    /// A first sentence that most tools of the server share is left out.
    pub summary: String,
    /// Whether the tool's description says that the tool is deprecated.
    pub is_deprecated: bool,
    /// The upstream server's definition of the tool as JSON text. It is not kept as a parsed tree, which
    /// would take many times as much memory.
    definition: Box<str>,
    /// The names of the parameters in the order of the schema, but required parameters first.
    pub parameters: Vec<String>,
    pub required: usize,
    /// For each parameter in `parameters`: whether it accepts `null` or an object, and its name in Python.
    pub accepted_values: Box<[AcceptedValues]>,
    /// Whether the tool accepts no other parameters than `parameters`. False if the schema lists no properties, lists
    /// more than can be read, or explicitly permits others. (JSON Schema permits others by default, but servers usually
    /// mean the list to be complete.)
    pub is_closed: bool,
    /// Whether the upstream server's library wraps results in an object: `{"result": VALUE}`.
    pub wraps_result: bool,
    /// Whether the upstream server declares that a call changes something.
    pub side_effects: SideEffects,
    pub python_signature: String,
    pub typescript_signature: String,
    /// SHA-256 of the definition, in hexadecimal.
    pub fingerprint: String,
    /// Whether the definition has an output schema that describes more than text. A schema by which a server's library
    /// only wraps text as `{"result": TEXT}` does not count, because it says nothing about the result.
    pub declares_values: bool,
    /// Whether the definition contains invisible characters.
    pub has_hidden_text: bool,
    /// How the tool differs from the definition that a user accepted; `None` if it does not differ.
    pub change: Option<ToolChange>,
}

/// How a tool differs from the definition that a user accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChange {
    /// The tool's definition differs from the accepted one.
    Definition,
    /// No definition of the tool has been accepted.
    New,
    /// The tool cannot be compared, because the file with the accepted definitions cannot be read or written.
    NotComparable,
}

/// Maximum length of a parameter's type in the result of [`Tool::describe`], in characters.
const TYPE_CHARS_MAX: usize = 240;

/// Whether a parameter of a tool accepts `null` or an object, and the parameter's name in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedValues {
    /// The name of the keyword argument in Python; `None` if it is the same as the parameter's name.
    pub keyword: Option<Box<str>>,
    /// Whether the parameter accepts `null`, also by OpenAPI's keyword `nullable`.
    pub null: bool,
    /// Whether the parameter accepts an object.
    pub object: bool,
}

/// The upstream server's annotations of a tool, `readOnlyHint` and `destructiveHint`. They are not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
}

/// Whether a call of a tool changes something, according to the upstream server's annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// The upstream server declares that the tool only reads.
    None,
    /// The upstream server declares that the tool may change something.
    Declared,
    /// The upstream server does not declare whether the tool changes something.
    Undeclared,
}

impl SideEffects {
    /// Returns whether a call may change something. This includes calls of tools without annotations.
    pub fn are_possible(self) -> bool {
        self != Self::None
    }
}

impl ToolHints {
    fn from_annotations(annotations: &Value) -> Self {
        let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
        Self { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") }
    }

    fn side_effects(self) -> SideEffects {
        match self {
            Self { read_only: Some(true), .. } => SideEffects::None,
            Self { read_only: None, destructive: None } => SideEffects::Undeclared,
            Self { .. } => SideEffects::Declared,
        }
    }
}

/// Options for the JSON object that describes a tool to a model, such as a search result or a full
/// description.
#[derive(Clone, Debug, Default)]
pub struct DescribeOptions {
    /// Whether each call of the tool requires approval.
    pub requires_approval: bool,
    /// The JSON Schema of the tool's results, inferred from the results of earlier calls. `None` if the tool
    /// has an output schema or no results were observed.
    pub observed_output: Option<Value>,
    /// Whether programs get text of the tool as text, also if it is JSON.
    pub keeps_text: bool,
    /// The language of the signatures and types in the JSON object; `None` for both languages.
    pub language: Option<Language>,
}

impl DescribeOptions {
    fn includes(&self, language: Language) -> bool {
        self.language.is_none_or(|its| its == language)
    }
}

impl Tool {
    /// Returns the upstream server's annotations of the tool, from its definition.
    pub fn hints(&self) -> ToolHints {
        #[derive(Default, serde::Deserialize)]
        struct Outline {
            #[serde(default)]
            annotations: Value,
        }
        let Outline { annotations } = serde_json::from_str(&self.definition).unwrap_or_default();
        ToolHints::from_annotations(&annotations)
    }

    /// Returns whether the upstream server declares that the tool changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.side_effects == SideEffects::None
    }

    /// Returns the tool's signature in a language, without notes such as the note that calls require approval.
    pub fn signature(&self, language: Language) -> &str {
        match language {
            Language::Python => &self.python_signature,
            Language::Typescript => &self.typescript_signature,
        }
    }

    /// Parses a tool definition, which is an entry of a server's `tools/list`. Returns `None` if the definition is too
    /// large, is not valid JSON or has no valid name.
    pub fn from_json(text: &str) -> Option<Self> {
        if text.len() > DEFINITION_BYTES_MAX {
            return None;
        }
        let (raw, values) = json::parse_counted(text.as_bytes(), usize::MAX).ok()?;
        let name = ToolName::new(raw.get("name")?.as_str()?).ok()?;
        let definition = fingerprint::canonical_text(text, values, &raw);
        let words = raw.get("description").and_then(Value::as_str).unwrap_or_default();
        let description: String = visible_text(words).chars().take(DESCRIPTION_CHARS_MAX).collect();
        let schema = raw.get("inputSchema").unwrap_or(&Value::Null);
        let input = types::parse_schema(schema);
        let unwrapped = raw.get("outputSchema").and_then(result_wrapper::unwrapped_schema);
        let declares_values = raw.get("outputSchema").is_some_and(Value::is_object)
            && unwrapped.as_ref().is_none_or(|schema| schema.get("type") != Some(&json!("string")));
        let output = unwrapped.as_ref().or(raw.get("outputSchema")).filter(|_| declares_values);
        let output = output.map(types::parse_schema);
        let arguments = input.arguments();
        let parameters: Vec<String> = arguments.fields.iter().map(|field| field.name.clone()).collect();
        let names: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let keywords = identifiers::parameter_identifiers(&names);
        let identifier = identifiers::identifier(name.as_str());
        let summary = summary::summary(&description);
        let signature = signature::Signature {
            identifier: &identifier,
            input: &input,
            arguments: &arguments,
            keywords: &keywords,
            output: output.as_ref(),
        };
        Some(Self {
            python_signature: signature.python(),
            typescript_signature: signature.typescript(),
            side_effects: ToolHints::from_annotations(raw.get("annotations").unwrap_or(&Value::Null))
                .side_effects(),
            fingerprint: fingerprint::fingerprint(&raw),
            declares_values,
            has_hidden_text: hidden_text::has_hidden_text(&raw),
            change: None,
            required: arguments.fields.iter().filter(|field| field.required).count(),
            is_closed: arguments.rest.is_none(),
            accepted_values: accepted_values(&input, &arguments, keywords),
            is_deprecated: summary::is_deprecated(&description),
            summary,
            name,
            identifier,
            description,
            definition,
            parameters,
            wraps_result: unwrapped.is_some(),
        })
    }

    /// Changes the tool's identifier, also in its signatures. Used if another tool has the same identifier.
    fn set_identifier(&mut self, identifier: String) {
        for signature in [&mut self.python_signature, &mut self.typescript_signature] {
            signature.replace_range(..self.identifier.len(), &identifier);
        }
        self.identifier = identifier;
    }

    /// Returns the upstream server's definition of the tool as JSON text.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Returns whether the tool's output schema only wraps text.
    fn returns_text(&self) -> bool {
        self.wraps_result && !self.declares_values
    }

    /// Returns the tool's entry in the list from which workers create the modules that programs import: name,
    /// identifier, parameters, number of required parameters, summary and signatures.
    pub fn module_entry(&self, options: &DescribeOptions) -> Value {
        let brief = json!({
            "name": self.name.as_str(), "identifier": self.identifier, "parameters": self.parameters,
            "required": self.required, "summary": self.summary,
        });
        self.without_hidden_text(self.with_signatures(brief, options))
    }

    /// Returns the tool as an entry of a search result with the detail level `names`: server, name, identifier (if it
    /// differs from the name), summary, and whether calls require approval.
    pub fn name_entry(&self, server: &str, requires_approval: bool) -> Value {
        let mut entry = json!({"server": server, "tool": self.name.as_str(), "summary": self.summary});
        if self.identifier != self.name.as_str() {
            entry["identifier"] = self.identifier.as_str().into();
        }
        if requires_approval {
            entry["ask"] = true.into();
        }
        entry
    }

    /// Returns the tool's signature with names and types only, in the form of Python, such as `list_issues(owner: str,
    /// state?: str) -> list`. Long types are abbreviated. `observed_output` is the JSON Schema that was inferred from
    /// earlier results. It is used if the tool has no output schema that describes more than text.
    pub fn short_signature(&self, observed_output: Option<&Value>) -> String {
        let definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        let input = types::parse_schema(definition.get("inputSchema").unwrap_or(&Value::Null));
        let declared = definition.get("outputSchema").filter(|_| self.declares_values);
        let unwrapped = declared.and_then(result_wrapper::unwrapped_schema);
        let output = unwrapped.as_ref().or(declared).or(observed_output).map(types::parse_schema);
        let arguments = input.arguments();
        let names: Vec<&str> = arguments.fields.iter().map(|field| field.name.as_str()).collect();
        let keywords = identifiers::parameter_identifiers(&names);
        let signature = signature::Signature {
            identifier: &self.identifier,
            input: &input,
            arguments: &arguments,
            keywords: &keywords,
            output: output.as_ref(),
        };
        match self.has_hidden_text {
            true => visible_text(&signature.short()).to_string(),
            false => signature.short(),
        }
    }

    /// Returns the tool as an entry of a search result with the detail level `signatures`.
    pub fn signature_entry(&self, server: &str, options: &DescribeOptions) -> Value {
        self.with_signatures(self.name_entry(server, options.requires_approval), options)
    }

    /// Adds the tool's signatures to `shown`, a JSON object about the tool. The signatures get a note if the tool's
    /// calls require approval, and a note if the result type was inferred from earlier results.
    fn with_signatures(&self, mut shown: Value, options: &DescribeOptions) -> Value {
        let (mut python, mut typescript) = (self.python_signature.clone(), self.typescript_signature.clone());
        let mut notes: Vec<&str> = Vec::new();
        if !self.declares_values {
            let observed = options.observed_output.as_ref();
            let [in_python, in_typescript] = match observed {
                Some(schema) => signature::result_types(schema),
                None if self.returns_text() => TEXT_TYPES.map(str::to_owned),
                None => [UNKNOWN_TYPE; 2].map(str::to_owned),
            };
            python.push_str(&format!(" -> {in_python}"));
            typescript.push_str(&format!(": Promise<{in_typescript}>"));
            if observed.is_none() && self.returns_text() && !options.keeps_text {
                notes.push(PARSED_TEXT_NOTE);
            }
            notes.extend(observed.map(|schema| match schema["type"] == "string" {
                true => OBSERVED_TEXT_NOTE,
                false => OBSERVED_NOTE,
            }));
        }
        if options.requires_approval {
            shown["ask"] = true.into();
            notes.push(APPROVAL_NOTE);
        }
        if !notes.is_empty() {
            let notes = notes.join("; ");
            python.push_str(&format!("  # {notes}"));
            typescript.push_str(&format!("  // {notes}"));
        }
        for (language, signature) in [(Language::Python, python), (Language::Typescript, typescript)] {
            if options.includes(language) {
                shown[language.as_str()] = signature.into();
            }
        }
        shown
    }

    /// Returns the full description of the tool: description, signatures and schemas ([`Self::full_entry`]),
    /// and the Python name of each parameter and its type in each requested language.
    pub fn describe(&self, server: &str, options: &DescribeOptions) -> Value {
        let mut full = self.full_entry(server, options);
        let input = types::parse_schema(full.get("inputSchema").unwrap_or(&Value::Null));
        let text = |kind: &types::Type, language| {
            types::OneLineFormat { language, parsed: &input }.format(kind, TYPE_CHARS_MAX)
        };
        let arguments = input.arguments();
        let parameter = |(field, accepted): (&types::Field, &AcceptedValues)| {
            let mut row = json!({
                "name": field.name,
                "keyword": accepted.keyword.as_deref().unwrap_or(&field.name),
                "required": field.required,
            });
            for language in [Language::Python, Language::Typescript] {
                if options.includes(language) {
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
        let parameters = arguments.fields.iter().zip(&self.accepted_values).map(parameter).collect();
        full["parameters"] = Value::Array(parameters);
        full
    }

    /// Formats a tool's result type in Python. `observed` is the JSON Schema of the results, inferred from earlier
    /// results.
    pub fn result_type(observed: &Value) -> String {
        let [python, _] = signature::result_types(observed);
        python
    }

    /// Returns a JSON object with the tool's description, signatures and schemas.
    pub fn full_entry(&self, server: &str, options: &DescribeOptions) -> Value {
        let full = json!({
            "server": server, "name": self.name.as_str(), "identifier": self.identifier,
            "description": self.description, "read_only": self.is_read_only(),
        });
        let mut full = self.with_signatures(full, options);
        let mut definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        for part in ["inputSchema", "outputSchema"] {
            if let Some(schema) = definition.get_mut(part) {
                full[part] = schema.take();
            }
        }
        if let Some(inner) = full.get("outputSchema").and_then(result_wrapper::unwrapped_schema) {
            full["outputSchema"] = inner;
        }
        if let Some(observed) = &options.observed_output {
            full["observedOutput"] = observed.clone();
        }
        self.without_hidden_text(full)
    }

    /// Replaces invisible characters in `shown`, a JSON object about the tool, if the tool's definition has invisible
    /// characters.
    fn without_hidden_text(&self, shown: Value) -> Value {
        if self.has_hidden_text { hidden_text::make_visible(shown) } else { shown }
    }
}

fn accepted_values(
    input: &types::ParsedSchema,
    arguments: &types::Object,
    keywords: Vec<String>,
) -> Box<[AcceptedValues]> {
    let accepted = |(field, keyword): (&types::Field, String)| AcceptedValues {
        null: input.admits(&field.kind, &Value::Null),
        object: input.admits(&field.kind, &json!({})),
        keyword: (keyword != field.name).then(|| keyword.into()),
    };
    arguments.fields.iter().zip(keywords).map(accepted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_parameters_come_first_in_order() {
        let tool = r#"{"name": "a", "inputSchema": {"properties": {"note": {}, "b": {}, "a": {}}, "required": ["a", "b"]}}"#;
        let tool = Tool::from_json(tool).expect("a tool");
        assert_eq!((tool.parameters.join(" "), tool.required), ("b a note".into(), 2));
    }

    #[test]
    fn side_effects_are_read_from_both_hints() {
        let changes = |annotations: Value| {
            let tool = json!({"name": "a", "annotations": annotations});
            Tool::from_json(&tool.to_string()).expect("a tool").side_effects
        };
        for undeclared in [Value::Null, json!({}), json!({"title": "A"}), json!({"readOnlyHint": "yes"})] {
            assert_eq!(changes(undeclared.clone()), SideEffects::Undeclared, "{undeclared}");
        }
        assert_eq!(changes(json!({"readOnlyHint": true})), SideEffects::None);
        assert_eq!(changes(json!({"readOnlyHint": false})), SideEffects::Declared);
        assert_eq!(changes(json!({"destructiveHint": false})), SideEffects::Declared);
    }

    #[test]
    fn tools_without_a_valid_name_are_skipped() {
        assert!(Tool::from_json(r#"{"name": "a  b"}"#).is_none());
        assert!(Tool::from_json(r#"{"inputSchema": {}}"#).is_none());
        assert_eq!(
            Tool::from_json(r#"{"name": "list-issues/v2"}"#).map(|tool| tool.identifier),
            Some("list_issues_v2".into())
        );
    }
}
