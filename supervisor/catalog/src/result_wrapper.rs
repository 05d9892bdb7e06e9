//! Detects results that the library of an upstream server wraps in an object.
//!
//! Structured content had to be an object in earlier versions of MCP. Python libraries therefore return a list, text or
//! number as `{"result": VALUE}`, and declare this in the output schema. Submitted code gets the value itself.

use serde_json::{Map, Value};

/// The property of an output schema by which the library FastMCP marks wrapped results.
const MARK: &str = "x-fastmcp-wrap-result";
/// The only property of a wrapped result.
const PROPERTY: &str = "result";
/// If the MCP SDK for Python wraps the results of a tool, the title of the output schema ends with this word.
const TITLE_END: &str = "Output";

/// Returns the schema of the value in wrapped results, with the definitions to which it may refer. Returns `None` if
/// the output schema `output` does not describe wrapped results.
pub(super) fn unwrapped_schema(output: &Value) -> Option<Value> {
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
    fn only_results_wrapped_by_libraries_are_unwrapped() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/Paper"}});
        let of_the_sdk = json!({
            "type": "object", "title": "searchOutput", "properties": {"result": list}, "required": ["result"],
            "$defs": {"Paper": {"type": "object"}},
        });
        let with_definitions = json!({"$defs": {"Paper": {"type": "object"}}, "type": "array", "items": {"$ref": "#/$defs/Paper"}});
        assert_eq!(unwrapped_schema(&of_the_sdk), Some(with_definitions));
        let of_fastmcp =
            json!({"properties": {"result": {"type": "string"}}, "required": ["result"], MARK: true});
        assert_eq!(unwrapped_schema(&of_fastmcp), Some(json!({"type": "string"})));
        for own in [
            json!({"properties": {"result": {"type": "string"}}, "required": ["result"]}),
            json!({"title": "Output", "properties": {"result": {}, "more": {}}, "required": ["result"]}),
            json!({"title": "Output", "properties": {"result": {}}}),
            json!({"title": "Output", "properties": {"results": {}}, "required": ["results"]}),
            json!({"title": "Output", "properties": [], "required": "result"}),
            json!(true),
        ] {
            assert_eq!(unwrapped_schema(&own), None, "{own}");
        }
    }
}
