//! What is wrong with arguments, in one line: where, what was expected, what may have been meant, and how the tool is called.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use lockhouse_base::language::Language;
use lockhouse_catalog::Tool;
use lockhouse_policies::{printable, quoted};
use serde_json::Value;

use lockhouse_policies::nearest;

/// Characters of a value, a name or a pattern that are repeated.
const SHOWN_CHARS_MAX: usize = 80;
/// Characters of a signature or a list of names.
const LIST_CHARS_MAX: usize = 500;
/// Alternatives within alternatives that are followed to what is nearest.
const ALTERNATIVES_MAX: usize = 8;

/// All of it.
pub(super) fn told(tool: &Tool, error: &ValidationError<'_>, language: Language) -> String {
    let error = innermost(error, ALTERNATIVES_MAX);
    let place = match error.instance_path().as_str() {
        "" => "the object of arguments".to_owned(),
        path => beginning(path),
    };
    format!("{}: {place} {}: {}", tool.name, expected(tool, error), signature(tool, language))
}

/// When it costs too much to say what.
pub(super) fn generally(tool: &Tool, language: Language) -> String {
    format!("the arguments do not fit the schema of {}: {}", tool.name, signature(tool, language))
}

/// As much of a text as is repeated.
pub(super) fn beginning(text: &str) -> String {
    clipped(text, SHOWN_CHARS_MAX)
}

fn clipped(text: &str, chars_max: usize) -> String {
    let more = if text.chars().nth(chars_max).is_some() { "…" } else { "" };
    format!("{}{more}", printable(&text.chars().take(chars_max).collect::<String>()))
}

fn signature(tool: &Tool, language: Language) -> String {
    clipped(tool.signature(language), LIST_CHARS_MAX)
}

/// Of alternatives none of which fits, the one that fits furthest: where its error stands is what was meant to be right.
fn innermost<'e, 'i>(error: &'e ValidationError<'i>, depth: usize) -> &'e ValidationError<'i>
where
    'i: 'e,
{
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else { return error };
    let own = error.instance_path().as_str().len();
    let firsts = context.iter().filter_map(|branch| branch.first());
    let furthest = firsts.map(|first| innermost(first, depth.saturating_sub(1)));
    let furthest = furthest.max_by_key(|error| error.instance_path().as_str().len());
    match furthest {
        Some(inner) if depth > 0 && inner.instance_path().as_str().len() > own => inner,
        _ => error,
    }
}

fn expected(tool: &Tool, error: &ValidationError<'_>) -> String {
    let value = error.instance();
    match error.kind() {
        Kind::Type { kind } => format!("must be {}, and is {}", types(kind), shown(value)),
        Kind::Enum { options } => one_of(options.as_array().map_or(&[], Vec::as_slice), value),
        Kind::Constant { expected_value } => {
            format!("must be {}, and is {}", written(expected_value), shown(value))
        }
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            format!("needs {}{}", beginning(property), takes(&properties(tool, error)))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unknown = unexpected.first().map(String::as_str).unwrap_or_default();
            let names = properties(tool, error);
            format!("has no {}{}{}", quoted(unknown, SHOWN_CHARS_MAX), meant(unknown, &names), takes(&names))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("{}, and is {}", alternatives(context), shown(value))
        }
        Kind::Pattern { pattern } => {
            format!("must match the pattern {}, and is {}", beginning(pattern), shown(value))
        }
        // The library's words, with nothing of the value in them.
        _ => format!("is not valid: {}", clipped(&error.masked_with("it").to_string(), 2 * SHOWN_CHARS_MAX)),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.as_str().to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or "),
    }
}

/// What every alternative wants first.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut wanted: Vec<String> = Vec::new();
    for first in context.iter().filter_map(|branch| branch.first()) {
        let one = match first.kind() {
            Kind::Type { kind } => types(kind),
            Kind::Constant { expected_value } => written(expected_value),
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                options.iter().take(ALTERNATIVES_MAX).map(written).collect::<Vec<_>>().join(" or ")
            }
            Kind::Required { property } => {
                format!("an object with {}", beginning(property.as_str().unwrap_or_default()))
            }
            _ => beginning(&first.masked_with("it").to_string()),
        };
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    let more = if wanted.len() > ALTERNATIVES_MAX { " or another of its forms" } else { "" };
    wanted.truncate(ALTERNATIVES_MAX);
    clipped(&format!("must be {}{more}", wanted.join(" or ")), LIST_CHARS_MAX)
}

fn one_of(options: &[Value], value: &Value) -> String {
    let names: Vec<String> = options.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let meant = value.as_str().map(|wanted| meant(wanted, &names)).unwrap_or_default();
    let list = options.iter().take(100).map(written).collect::<Vec<_>>().join(", ");
    format!("must be one of {}, and is {}{meant}", clipped(&list, LIST_CHARS_MAX), shown(value))
}

fn meant(wanted: &str, names: &[String]) -> String {
    let wanted = beginning(wanted);
    let nearest = nearest(&wanted, names.iter().map(String::as_str));
    nearest.map(|name| format!("; did you mean {}?", beginning(name))).unwrap_or_default()
}

fn takes(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; it takes {}", clipped(&names.join(", "), LIST_CHARS_MAX))
}

/// The names that the schema at fault lists.
fn properties(tool: &Tool, error: &ValidationError<'_>) -> Vec<String> {
    let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
    let place = error.schema_path().as_str();
    let place = place.rfind('/').map_or("", |at| &place[..at]);
    let properties = definition
        .get("inputSchema")
        .and_then(|schema| schema.pointer(place))
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    properties.map(|members| members.keys().cloned().collect()).unwrap_or_default()
}

/// A value that the schema has.
fn written(value: &Value) -> String {
    beginning(&value.to_string())
}

/// A value that was given, or what it is.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::String(text) => quoted(text, SHOWN_CHARS_MAX),
        scalar => beginning(&scalar.to_string()),
    }
}
