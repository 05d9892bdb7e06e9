//! The audit log: how a record describes the arguments of a call. A record always has the names of the arguments, the
//! JSON types of their values, and a keyed hash of the arguments. A record has the values of the arguments only if the
//! configuration enables that.

use serde_json::{Map, Value};

use super::hash_chain::push_string;
use super::redaction::Redaction;

/// Maximum number of argument names that are recorded for one call, including names in nested objects. Further names
/// are omitted.
/// Bound: the audit log.
const NAMES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 64;
/// Maximum nesting depth of objects whose member names are recorded; the arguments object has the depth 1. A deeper
/// object is recorded as the type `object`.
const DEPTH_MAX: usize = 3;
/// Maximum number of characters of one recorded string value. Longer strings are truncated.
/// `VALUES_BYTES_MAX` is the maximum number of bytes of all recorded values of one call.
/// Bound: the audit log.
const TEXT_CHARS_MAX: usize = 2_048;
const VALUES_BYTES_MAX: usize = 16 * 1024;
/// Maximum nesting depth of recorded argument values. Deeper values are replaced by `[too deep]`, which bounds the
/// stack use of programs that parse the record.
const VALUES_DEPTH_MAX: usize = 32;

/// Returns the names of a call's arguments, each with the JSON type of its value, as a JSON object. The values are left
/// out. Names can be long or contain secrets, too: long names are truncated, and secrets in names are redacted.
pub(super) fn shape(arguments: &Map<String, Value>, redaction: &Redaction) -> String {
    let (mut json, mut left) = (String::with_capacity(64), NAMES_MAX);
    push_shape(&mut json, arguments, redaction, &mut left, DEPTH_MAX);
    json
}

fn push_shape(
    json: &mut String,
    arguments: &Map<String, Value>,
    redaction: &Redaction,
    left: &mut usize,
    depth: usize,
) {
    json.push('{');
    for (position, (name, value)) in arguments.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        if *left == 0 {
            json.push_str("\"…\":\"…\"");
            break;
        }
        *left -= 1;
        let name = redaction.without_secrets(name);
        match name.char_indices().nth(NAME_CHARS_MAX) {
            Some((end, _)) => push_string(json, &format!("{}…", &name[..end])),
            None => push_string(json, &name),
        }
        json.push(':');
        match value {
            Value::Object(members) if depth > 1 => push_shape(json, members, redaction, left, depth - 1),
            other => push_string(json, type_of(other)),
        }
    }
    json.push('}');
}

/// Returns the type name that JSON Schema uses for a value.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The argument values of a call, as the audit log records them.
pub(super) struct RecordedValues {
    pub(super) json: String,
    /// Whether all values are complete and unchanged: none was redacted, truncated or omitted.
    pub(super) exact: bool,
}

/// Returns the argument values of a call as JSON. Secrets, and the values of arguments whose names match a pattern in
/// `redaction`, are replaced. Long values are truncated.
pub(super) fn values(arguments: &Map<String, Value>, redaction: &Redaction) -> RecordedValues {
    let (mut exact, mut left) = (true, VALUES_BYTES_MAX);
    let kept = kept_object(arguments, redaction, &mut left, &mut exact, VALUES_DEPTH_MAX);
    RecordedValues { json: Value::Object(kept).to_string(), exact }
}

fn kept_object(
    members: &Map<String, Value>,
    redaction: &Redaction,
    left: &mut usize,
    exact: &mut bool,
    depth: usize,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in members {
        if *left < name.len() {
            *exact = false;
            break;
        }
        *left -= name.len();
        let value = if redaction.redacts_name(name) {
            *exact = false;
            "[redacted]".into()
        } else {
            kept_value(value, redaction, left, exact, depth)
        };
        kept.insert(redaction.without_secrets(name).into_owned(), value);
    }
    kept
}

fn kept_value(
    value: &Value,
    redaction: &Redaction,
    left: &mut usize,
    exact: &mut bool,
    depth: usize,
) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) if depth == 0 => {
            *exact = false;
            "[too deep]".into()
        }
        Value::Object(members) => kept_object(members, redaction, left, exact, depth - 1).into(),
        Value::Array(elements) => {
            let mut kept = Vec::new();
            for element in elements {
                // Even the smallest element uses budget, because an array may have millions of elements.
                if *left < 2 {
                    *exact = false;
                    break;
                }
                *left -= 2;
                kept.push(kept_value(element, redaction, left, exact, depth - 1));
            }
            kept.into()
        }
        Value::String(text) => kept_text(text, redaction, left, exact).into(),
        scalar => {
            *left = left.saturating_sub(8);
            scalar.clone()
        }
    }
}

fn kept_text(text: &str, redaction: &Redaction, left: &mut usize, exact: &mut bool) -> String {
    let redacted = redaction.without_secrets(text);
    let end = redacted.char_indices().nth(TEXT_CHARS_MAX).map_or(redacted.len(), |(end, _)| end);
    let end = if end > *left { redacted.floor_char_boundary(*left) } else { end };
    *left -= end;
    *exact &= redacted == text && end == redacted.len();
    if end == redacted.len() { redacted.into_owned() } else { format!("{}…", &redacted[..end]) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        let arguments = map(json!({
            "id": 7, "ratio": 0.5, "to": "ann@example.org", "all": true, "none": null, "rows": [1],
            "filter": {"a": {"b": {"c": 1}}},
        }));
        let expected = json!({
            "id": "integer", "ratio": "number", "to": "string", "all": "boolean", "none": "null", "rows": "array",
            "filter": {"a": {"b": "object"}},
        });
        assert_eq!(
            serde_json::from_str::<Value>(&shape(&arguments, &Redaction::default())).expect("JSON"),
            expected
        );
    }

    #[test]
    fn a_shape_is_bounded() {
        let many: Map<String, Value> =
            (0..1_000).map(|n| (format!("{n}{}", "x".repeat(500)), json!(1))).collect();
        let shape = shape(&map(json!({"a": many.clone(), "b": many})), &Redaction::default());
        assert!(shape.len() < NAMES_MAX * (NAME_CHARS_MAX + 20), "{}", shape.len());
        assert!(serde_json::from_str::<Value>(&shape).is_ok(), "{shape}");
    }

    #[test]
    fn values_are_redacted_and_bounded() {
        let redaction = Redaction::new(vec!["*_key".into(), "password".into()]);
        let record = |value: Value| {
            let RecordedValues { json, exact } = values(&map(value), &redaction);
            (serde_json::from_str::<Value>(&json).expect("JSON"), exact)
        };
        assert_eq!(record(json!({"a": [1, "x"]})), (json!({"a": [1, "x"]}), true));
        let nested = json!({"user": {"Password": {"old": "x"}, "api_key": 3, "name": "y"}});
        let kept = json!({"user": {"Password": "[redacted]", "api_key": "[redacted]", "name": "y"}});
        assert_eq!(record(nested), (kept, false));
        for large in [
            json!({"a": "é".repeat(100_000)}),
            json!({"a": vec!["abc"; 50_000]}),
            json!({"a": vec![json!({"b": 1}); 50_000]}),
            json!({"a": vec![json!([]); 50_000]}),
        ] {
            let RecordedValues { json, exact } = values(&map(large), &redaction);
            assert!(!exact && json.len() < 4 * VALUES_BYTES_MAX, "{}", json.len());
        }
    }
}
