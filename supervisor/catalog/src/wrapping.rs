//! Results that a server's library wrapped, since structured content was long an object and nothing else.
//!
//! The Python libraries make `{"result": VALUE}` of a function that gives a list, a text or a number, and declare it so. What
//! the function gives is what its author meant, and what code gets.

use serde_json::{Map, Value};

/// Where the wrapping library says so.
const MARK: &str = "x-fastmcp-wrap-result";
/// What the only property is called, and how the title of the schema then ends.
const PROPERTY: &str = "result";
const TITLE_END: &str = "Output";

/// The schema of the value inside, if that is what an output schema describes; with the definitions that it may refer to.
pub(super) fn inner(output: &Value) -> Option<Value> {
    let properties = output.get("properties")?.as_object()?;
    let value = properties.get(PROPERTY)?;
    let required = output.get("required")?.as_array()?;
    let alone = properties.len() == 1 && required.len() == 1 && required[0] == PROPERTY;
    let titled = output.get("title").and_then(Value::as_str).is_some_and(|title| title.ends_with(TITLE_END));
    if !alone || !(titled || output.get(MARK) == Some(&Value::Bool(true))) {
        return None;
    }
    let definitions = ["$defs", "definitions"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), output.get(name)?.clone())));
    let mut inner: Map<String, Value> = definitions.collect();
    inner.extend(value.as_object()?.clone());
    Some(inner.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_libraries_wrap_is_known_and_nothing_else() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/Paper"}});
        let of_the_sdk = json!({
            "type": "object", "title": "searchOutput", "properties": {"result": list}, "required": ["result"],
            "$defs": {"Paper": {"type": "object"}},
        });
        let with_definitions = json!({"$defs": {"Paper": {"type": "object"}}, "type": "array", "items": {"$ref": "#/$defs/Paper"}});
        assert_eq!(inner(&of_the_sdk), Some(with_definitions));
        let of_fastmcp =
            json!({"properties": {"result": {"type": "string"}}, "required": ["result"], MARK: true});
        assert_eq!(inner(&of_fastmcp), Some(json!({"type": "string"})));
        for own in [
            json!({"properties": {"result": {"type": "string"}}, "required": ["result"]}),
            json!({"title": "Output", "properties": {"result": {}, "more": {}}, "required": ["result"]}),
            json!({"title": "Output", "properties": {"result": {}}}),
            json!({"title": "Output", "properties": {"results": {}}, "required": ["results"]}),
            json!({"title": "Output", "properties": [], "required": "result"}),
            json!(true),
        ] {
            assert_eq!(inner(&own), None, "{own}");
        }
    }
}
