//! Canonical JSON of the arguments of a call. The keyed hash in the call's audit record is computed from this text.

use serde_json::{Map, Value};

/// Returns the arguments of a call as canonical JSON, with sorted names and without white space. Equal arguments give
/// equal bytes.
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
    // Writing to a vector cannot fail, and a scalar always serializes.
    let _ = serde_json::to_writer(json, scalar);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn canonical_json_is_independent_of_the_order_of_names() {
        let one = members(json!({"b": [1, {"y": "é\n", "x": null}], "a": 1.5}));
        let other = members(json!({"a": 1.5, "b": [1, {"x": null, "y": "é\n"}]}));
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"x":null,"y":"é\n"}]}"#.as_bytes());
    }
}
