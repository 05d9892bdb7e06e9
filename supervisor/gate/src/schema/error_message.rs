//! Renders schema validation errors as one line of text: where the error is, what the schema expects, a
//! suggestion, and the tool's signature.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use lockhouse_catalog::Tool;
use lockhouse_policies::{printable, quoted};
use lockhouse_protocol::Language;
use serde_json::Value;

use lockhouse_policies::most_similar_name;

/// Maximum number of characters of a value, name or pattern that a validation error message quotes.
const SHOWN_CHARS_MAX: usize = 80;
/// Maximum number of characters of a signature or a list of names in a validation error message.
const LIST_CHARS_MAX: usize = 500;
/// Two limits for alternatives in a schema (`anyOf`, `oneOf`): the maximum nesting depth that is searched for
/// the most specific error, and the maximum number of alternatives that an error message lists.
const ALTERNATIVES_MAX: usize = 8;

/// Returns the whole error message for arguments that do not match the schema of a tool.
pub(super) fn describe_error(tool: &Tool, error: &ValidationError<'_>, language: Language) -> String {
    let error = deepest_error(error, ALTERNATIVES_MAX);
    let place = match error.instance_path().as_str() {
        "" => "the object of arguments".to_owned(),
        path => truncate(path),
    };
    format!("{}: {place} {}: {}", tool.name, expectation(tool, error), signature(tool, language))
}

/// Returns an error message without details. It is used if finding the details would exceed the validation
/// budget.
pub(super) fn describe_mismatch(tool: &Tool, language: Language) -> String {
    format!("the arguments do not fit the schema of {}: {}", tool.name, signature(tool, language))
}

/// Returns the error message for a float beyond 2^53 at the JSON pointer `place`, where the schema requires an integer. The
/// place is empty, and there is no float, if they are not known.
pub(super) fn rounded(tool: &Tool, place: &str, float: Option<f64>) -> String {
    let place = if place.is_empty() { "a value".to_owned() } else { truncate(place) };
    let float = float.map(|float| format!("{float:e} ")).unwrap_or_default();
    format!(
        "{}: {place} must be an integer, and {float}is a float beyond 2^53, which may have lost digits: pass the exact integer \
         (an int in Python, a BigInt such as 9007199254740993n in TypeScript)",
        tool.name
    )
}

/// Truncates a text to [`SHOWN_CHARS_MAX`] characters and escapes hidden characters.
pub(super) fn truncate(text: &str) -> String {
    truncate_to(text, SHOWN_CHARS_MAX)
}

fn truncate_to(text: &str, chars_max: usize) -> String {
    let more = if text.chars().nth(chars_max).is_some() { "…" } else { "" };
    format!("{}{more}", printable(&text.chars().take(chars_max).collect::<String>()))
}

fn signature(tool: &Tool, language: Language) -> String {
    truncate_to(tool.signature(language), LIST_CHARS_MAX)
}

/// If `error` says that no alternative of `anyOf` or `oneOf` matches, returns a more specific error: that of the
/// best alternative, whose error lies deepest in the arguments. Returns other errors unchanged. `depth` limits how
/// many levels of nested alternatives are searched.
fn deepest_error<'e, 'i>(error: &'e ValidationError<'i>, depth: usize) -> &'e ValidationError<'i>
where
    'i: 'e,
{
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else { return error };
    let own = error.instance_path().as_str().len();
    let firsts = context.iter().filter_map(|branch| branch.first());
    let furthest = firsts.map(|first| deepest_error(first, depth.saturating_sub(1)));
    let furthest = furthest.max_by_key(|error| error.instance_path().as_str().len());
    match furthest {
        Some(inner) if depth > 0 && inner.instance_path().as_str().len() > own => inner,
        _ => error,
    }
}

/// Describes what the schema expects at the place of an error and what was found there.
fn expectation(tool: &Tool, error: &ValidationError<'_>) -> String {
    let value = error.instance();
    match error.kind() {
        Kind::Type { kind } => format!("must be {}, and is {}", type_names(kind), argument_value_text(value)),
        Kind::Enum { options } => options_text(options.as_array().map_or(&[], Vec::as_slice), value),
        Kind::Constant { expected_value } => {
            format!("must be {}, and is {}", schema_value_text(expected_value), argument_value_text(value))
        }
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            format!("needs {}{}", truncate(property), accepted_names_text(&property_names(tool, error)))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unknown = unexpected.first().map(String::as_str).unwrap_or_default();
            let names = property_names(tool, error);
            format!(
                "has no {}{}{}",
                quoted(unknown, SHOWN_CHARS_MAX),
                suggestion(unknown, &names),
                accepted_names_text(&names)
            )
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("{}, and is {}", alternatives_text(context), argument_value_text(value))
        }
        Kind::Pattern { pattern } => {
            format!("must match the pattern {}, and is {}", truncate(pattern), argument_value_text(value))
        }
        // The validator's own message, without the value.
        _ => format!(
            "is not valid: {}",
            truncate_to(&error.masked_with("it").to_string(), 2 * SHOWN_CHARS_MAX)
        ),
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.as_str().to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or "),
    }
}

/// Describes what each alternative of a schema requires. The requirement is taken from the first validation
/// error of the alternative.
fn alternatives_text(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut wanted: Vec<String> = Vec::new();
    for first in context.iter().filter_map(|branch| branch.first()) {
        let one = match first.kind() {
            Kind::Type { kind } => type_names(kind),
            Kind::Constant { expected_value } => schema_value_text(expected_value),
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                options.iter().take(ALTERNATIVES_MAX).map(schema_value_text).collect::<Vec<_>>().join(" or ")
            }
            Kind::Required { property } => {
                format!("an object with {}", truncate(property.as_str().unwrap_or_default()))
            }
            _ => truncate(&first.masked_with("it").to_string()),
        };
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    let more = if wanted.len() > ALTERNATIVES_MAX { " or another of its forms" } else { "" };
    wanted.truncate(ALTERNATIVES_MAX);
    truncate_to(&format!("must be {}{more}", wanted.join(" or ")), LIST_CHARS_MAX)
}

fn options_text(options: &[Value], value: &Value) -> String {
    let names: Vec<String> = options.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let meant = value.as_str().map(|wanted| suggestion(wanted, &names)).unwrap_or_default();
    let list = options.iter().take(100).map(schema_value_text).collect::<Vec<_>>().join(", ");
    format!(
        "must be one of {}, and is {}{meant}",
        truncate_to(&list, LIST_CHARS_MAX),
        argument_value_text(value)
    )
}

fn suggestion(wanted: &str, names: &[String]) -> String {
    let wanted = truncate(wanted);
    let nearest = most_similar_name(&wanted, names.iter().map(String::as_str));
    nearest.map(|name| format!("; did you mean {}?", truncate(name))).unwrap_or_default()
}

fn accepted_names_text(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; it takes {}", truncate_to(&names.join(", "), LIST_CHARS_MAX))
}

/// Returns the names of the properties that the schema declares for the object in which the error is.
fn property_names(tool: &Tool, error: &ValidationError<'_>) -> Vec<String> {
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

/// Renders a value from the schema, such as a permitted choice, as JSON that is truncated for an error message.
fn schema_value_text(value: &Value) -> String {
    truncate(&value.to_string())
}

/// Renders a value of the arguments for an error message. Strings and other scalars are shown; of an object
/// or array, only the type is shown.
fn argument_value_text(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::String(text) => quoted(text, SHOWN_CHARS_MAX),
        scalar => truncate(&scalar.to_string()),
    }
}
