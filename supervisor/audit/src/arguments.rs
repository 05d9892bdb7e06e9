//! What a record says of a call's arguments: their shape and hash always, their values only where somebody wants them.

use serde_json::{Map, Value};

use super::line::push_string;
use super::redaction::Redaction;

/// Names in one shape, at whatever depth.
const NAMES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 64;
/// Objects within objects whose names are told.
const DEPTH_MAX: usize = 3;
/// Characters of one text, and bytes of all values.
const TEXT_CHARS_MAX: usize = 2_048;
const VALUES_BYTES_MAX: usize = 16 * 1024;
/// Deeper values are left out, so that reading them costs no stack.
const VALUES_DEPTH_MAX: usize = 32;

/// The names of arguments and the types of their values, as JSON.
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

/// As a JSON schema calls it.
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

/// JSON that is the same for the same arguments, in whatever order they came: names sorted, no white space.
pub(super) fn canonical(arguments: &Map<String, Value>) -> Vec<u8> {
    let mut json = Vec::with_capacity(128);
    push_object(&mut json, arguments);
    json
}

fn push_object(json: &mut Vec<u8>, members: &Map<String, Value>) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    json.push(b'{');
    for (position, (name, value)) in members.into_iter().enumerate() {
        if position > 0 {
            json.push(b',');
        }
        push_scalar(json, name);
        json.push(b':');
        push_value(json, value);
    }
    json.push(b'}');
}

fn push_value(json: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(members) => push_object(json, members),
        Value::Array(elements) => {
            json.push(b'[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    json.push(b',');
                }
                push_value(json, element);
            }
            json.push(b']');
        }
        scalar => push_scalar(json, scalar),
    }
}

fn push_scalar(json: &mut Vec<u8>, scalar: &(impl serde::Serialize + ?Sized)) {
    // A vector takes everything, and scalars are always JSON.
    let _ = serde_json::to_writer(json, scalar);
}

/// Values as far as they may be kept.
pub(super) struct Kept {
    pub(super) json: String,
    /// Whether they are all there, each as it was.
    pub(super) exact: bool,
}

/// The values, without what must not be kept and what is too long.
pub(super) fn values(arguments: &Map<String, Value>, redaction: &Redaction) -> Kept {
    let (mut exact, mut left) = (true, VALUES_BYTES_MAX);
    let kept = kept_object(arguments, redaction, &mut left, &mut exact, VALUES_DEPTH_MAX);
    Kept { json: Value::Object(kept).to_string(), exact }
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
        let value = if redaction.has_name(name) {
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
                // Of the smallest elements there may be millions.
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
    fn the_order_of_names_does_not_count() {
        let one = map(json!({"b": [1, {"y": "é\n", "x": null}], "a": 1.5}));
        let other = map(json!({"a": 1.5, "b": [1, {"x": null, "y": "é\n"}]}));
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"x":null,"y":"é\n"}]}"#.as_bytes());
    }

    #[test]
    fn values_are_kept_without_what_must_not_be_and_within_a_bound() {
        let redaction = Redaction::new(vec!["*_key".into(), "password".into()]);
        let told = |value: Value| {
            let Kept { json, exact } = values(&map(value), &redaction);
            (serde_json::from_str::<Value>(&json).expect("JSON"), exact)
        };
        assert_eq!(told(json!({"a": [1, "x"]})), (json!({"a": [1, "x"]}), true));
        let nested = json!({"user": {"Password": {"old": "x"}, "api_key": 3, "name": "y"}});
        let kept = json!({"user": {"Password": "[redacted]", "api_key": "[redacted]", "name": "y"}});
        assert_eq!(told(nested), (kept, false));
        for large in [
            json!({"a": "é".repeat(100_000)}),
            json!({"a": vec!["abc"; 50_000]}),
            json!({"a": vec![json!({"b": 1}); 50_000]}),
            json!({"a": vec![json!([]); 50_000]}),
        ] {
            let Kept { json, exact } = values(&map(large), &redaction);
            assert!(!exact && json.len() < 4 * VALUES_BYTES_MAX, "{}", json.len());
        }
    }
}
