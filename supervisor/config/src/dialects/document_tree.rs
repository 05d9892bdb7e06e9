//! A common syntax tree for JSON with comments, TOML and YAML, in which every key and value has its byte range.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::redacted_diagnostic;

/// A value of the document, with its byte range in the file.
#[derive(Clone)]
pub struct Node {
    pub at: Range<usize>,
    pub value: Value,
}

#[derive(Clone)]
pub enum Value {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
    /// A date in a TOML file. The date itself is not stored, since no supported format uses dates.
    Date,
}

/// The keys and values of a table in the order of the file. Each key occurs once.
pub type Table = Vec<(Key, Node)>;

#[derive(Clone)]
pub struct Key {
    pub at: Range<usize>,
    pub name: String,
}

impl Node {
    pub fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub fn list(&self) -> Option<&[Node]> {
        if let Value::List(list) = &self.value { Some(list) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Converts the value to JSON. A date becomes null.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null | Value::Date => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).into(),
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(list) => list.iter().map(Self::to_json).collect(),
            Value::Table(table) => {
                table.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
            }
        }
    }

    /// Returns all strings in the value and in its nested lists and tables, without the keys of tables.
    pub fn texts(&self) -> Vec<&str> {
        match &self.value {
            Value::Text(text) => vec![text],
            Value::List(list) => list.iter().flat_map(Node::texts).collect(),
            Value::Table(table) => table.iter().flat_map(|(_, node)| node.texts()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the value of a key in a table. `None` if the table does not have the key.
pub(crate) fn get<'t>(table: &'t Table, name: &str) -> Option<&'t Node> {
    table.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
}

/// Returns the value at a path of nested keys. `None` if there is no such value.
pub fn get_path<'t>(table: &'t Table, names: &[&str]) -> Option<&'t Node> {
    let (last, outer) = names.split_last()?;
    let table = outer.iter().try_fold(table, |table, name| get(table, name)?.table())?;
    get(table, last)
}

pub fn parse_json(source: &Source) -> Result<Node, Diagnostics> {
    json(&source.text).map_err(|error| {
        let (message, help) = explain(error.kind());
        let span = error.range().start..error.range().end;
        let fault =
            redacted_diagnostic::new(source, Some(span), "the file is not valid JSON", message.into());
        fault.with_help(help).into()
    })
}

pub(crate) fn parse_toml(source: &Source) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
    DeTable::parse(&source.text).map_err(|error| not_toml(source, &error))
}

fn not_toml(source: &Source, error: &toml::de::Error) -> Diagnostics {
    let fault = redacted_diagnostic::new(
        source,
        error.span(),
        "the file is not valid TOML",
        error.message().to_owned(),
    );
    fault.with_help("a servers file is JSON with {\"mcpServers\": …} or TOML with [servers.NAME]").into()
}

/// The parse options for JSON with comments and trailing commas, as VS Code and Zed write it. No other extension of
/// JSON is allowed.
const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn json(text: &str) -> Result<Node, jsonc_parser::errors::ParseError> {
    // Three spaces replace the byte order mark, which has three bytes, so that byte ranges stay correct.
    let unmarked = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
    let parsed = parse_to_ast(unmarked.as_deref().unwrap_or(text), &CollectOptions::default(), &JSONC)?;
    let empty = Node { at: 0..0, value: Value::Null };
    Ok(parsed.value.map_or(empty, json_node))
}

fn json_node(value: ast::Value<'_>) -> Node {
    use ast::Value as Json;
    let span = |range: &jsonc_parser::common::Range| range.start..range.end;
    let (at, value) = match value {
        Json::StringLit(text) => (span(&text.range), Value::Text(text.value.into_owned())),
        Json::NumberLit(number) => {
            (span(&number.range), number.value.parse().map_or(Value::Null, Value::Number))
        }
        Json::BooleanLit(flag) => (span(&flag.range), Value::Flag(flag.value)),
        Json::NullKeyword(null) => (span(&null.range), Value::Null),
        Json::Array(list) => {
            (span(&list.range), Value::List(list.elements.into_iter().map(json_node).collect()))
        }
        Json::Object(object) => {
            let property = |property: ast::ObjectProp<'_>| {
                let at = match &property.name {
                    ast::ObjectPropName::String(name) => span(&name.range),
                    ast::ObjectPropName::Word(name) => span(&name.range),
                };
                (Key { at, name: property.name.into_string() }, json_node(property.value))
            };
            (
                span(&object.range),
                Value::Table(last_of_each_name(object.properties.into_iter().map(property))),
            )
        }
    };
    Node { at, value }
}

/// Builds a table from properties. Of several properties with the same name, only the last one is kept, as every AI
/// client does.
fn last_of_each_name(properties: impl DoubleEndedIterator<Item = (Key, Node)>) -> Table {
    let mut seen = HashSet::new();
    let mut table: Table = properties.rev().filter(|(key, _)| seen.insert(key.name.clone())).collect();
    table.reverse();
    table
}

pub(super) fn toml_table(table: DeTable<'_>) -> Table {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        let at = value.span();
        (Key { at: key.span(), name: key.into_inner().into_owned() }, toml_node(at, value.into_inner()))
    };
    let mut table: Table = table.into_iter().map(entry).collect();
    table.sort_by_key(|(key, _)| key.at.start);
    table
}

pub(super) fn toml_node(at: Range<usize>, value: DeValue<'_>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            number.map_or(Value::Number(f64::NAN), |number| Value::Number(number as f64))
        }
        DeValue::Float(number) => Value::Number(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(list) => {
            let node = |node: Spanned<DeValue<'_>>| toml_node(node.span(), node.into_inner());
            Value::List(list.into_iter().map(node).collect())
        }
        DeValue::Table(table) => Value::Table(toml_table(table)),
    };
    Node { at, value }
}

/// Returns the description of a JSON syntax error, and advice on how to correct the error. Neither quotes the file.
fn explain(kind: &ParseErrorKind) -> (&'static str, &'static str) {
    use ParseErrorKind as Kind;
    const CLOSE: &str = "look for a brace, bracket or quotation mark that is not closed";
    match kind {
        Kind::ExpectedComma => ("a comma is missing", "put a comma between two entries"),
        Kind::UnexpectedComma => ("a comma that follows nothing", "take the comma out"),
        Kind::ExpectedColonAfterObjectKey => ("a colon is missing", "write \"KEY\": VALUE"),
        Kind::ExpectedStringObjectProperty | Kind::UnexpectedTokenInObject => {
            ("expected a key in double quotes", "write \"KEY\": VALUE")
        }
        Kind::ExpectedObjectValue => ("a value is missing", "write \"KEY\": VALUE"),
        Kind::SingleQuotedStringsNotAllowed => ("a string in single quotes", "use double quotes"),
        Kind::MultipleRootJsonValues => ("text after the end", "the file must be one object, {…}"),
        Kind::String(_) => {
            ("a string that is not valid", "end it on its line, and write \\\\ for a backslash")
        }
        Kind::UnterminatedArray | Kind::UnterminatedObject => ("the file ends too early", CLOSE),
        Kind::UnterminatedCommentBlock => ("a comment that does not end", "end it with */"),
        Kind::NestingDepthExceeded => ("nested too deeply", "at most 512 levels are read"),
        _ => ("something that does not belong here", CLOSE),
    }
}

/// Returns the diagnostic for a servers file that lists no servers.
pub(crate) fn without_servers(source: &Source) -> Diagnostics {
    let label = "expected {\"mcpServers\": {\"NAME\": {\"command\": \"...\", \"args\": [...]}}}, or the like of another AI client";
    let fault = Diagnostic::new(source, None, "the servers file lists no servers", label);
    fault.with_help("docs/configuration.md lists the formats that are read").into()
}
