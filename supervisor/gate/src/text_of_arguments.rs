//! Refuses calls whose arguments were passed as JSON text.

use lockhouse_base::json;
use lockhouse_catalog::Tool;
use lockhouse_protocol::{Failure, Language};
use serde_json::{Map, Value};

use super::failures::invalid_arguments;

/// Maximum number of JSON values in a text that is examined. A larger one is not the arguments of a call.
const NODES_MAX: usize = 1_000;

/// Words in the names of parameters that take text of any content, so that JSON text may be meant.
const TEXT_WORDS: [&str; 24] = [
    "answer",
    "body",
    "code",
    "comment",
    "content",
    "contents",
    "data",
    "description",
    "document",
    "expression",
    "filter",
    "input",
    "json",
    "message",
    "note",
    "object",
    "payload",
    "query",
    "script",
    "source",
    "text",
    "value",
    "values",
    "variables",
];

/// Refuses a call whose only argument is JSON text of an object, such as `read_file(JSON.stringify({ file_path }))`. As the
/// first parameter it would silently have another meaning. It is not parsed as the arguments either, because the text may
/// be a result of an upstream server, whose names must not become names of arguments. A program that means the text
/// itself passes it by name. Text is accepted if none of its keys is the name of a parameter and the first parameter
/// may take JSON text. `parameter` returns the parameter that a name means.
pub(super) fn refuse<'t>(
    tool: &'t Tool,
    values: &[Value],
    language: Language,
    parameter: impl Fn(&str) -> Option<&'t str>,
) -> Result<(), Failure> {
    let ([Value::String(text)], Some(first)) = (values, tool.parameters.first()) else { return Ok(()) };
    let Some(object) = object_of(text) else { return Ok(()) };
    let named = object.keys().find_map(|name| parameter(name));
    if named.is_none() && takes_json_text(tool, first) {
        return Ok(());
    }
    let (name, tool) = (named.unwrap_or(first), &tool.name);
    let (object, whole) = match language {
        Language::Python => (format!("{tool}({name}=...)"), format!("{tool}({first}=text)")),
        Language::Typescript => {
            (format!("{tool}({{ {name}: ... }})"), format!("{tool}({{ {first}: text }})"))
        }
    };
    Err(invalid_arguments(format!(
        "{tool} got its arguments as JSON text: pass them by name, {object}. If the text itself is meant: {whole}"
    )))
}

/// Parses text that is a JSON object. Returns `None` for other text, and for an object that is too large.
fn object_of(text: &str) -> Option<Map<String, Value>> {
    if !text.trim_start().starts_with('{') || json::count(text.as_bytes(), NODES_MAX).fault.is_some() {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Returns whether a parameter may take JSON text: its name has a word such as `content`, or its schema says so.
fn takes_json_text(tool: &Tool, parameter: &str) -> bool {
    let words = parameter.split(|character: char| !character.is_alphanumeric());
    let is_of_text = |word: &str| TEXT_WORDS.contains(&last_word(word).to_lowercase().as_str());
    words.into_iter().any(is_of_text) || schema_names_json(tool, parameter)
}

/// Returns the last word of a name in camel case, such as `Content` of `fileContent`.
fn last_word(name: &str) -> &str {
    let start = name.char_indices().rev().find(|(_, character)| character.is_uppercase());
    start.map_or(name, |(start, _)| &name[start..])
}

/// Returns whether the description, the format or the media type in the schema of a parameter names JSON.
fn schema_names_json(tool: &Tool, parameter: &str) -> bool {
    let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
    let schema = &definition["inputSchema"]["properties"][parameter];
    ["description", "title", "format", "contentMediaType"]
        .iter()
        .filter_map(|key| schema[*key].as_str())
        .any(|text| text.to_ascii_lowercase().contains("json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_refused(parameter: &str, schema: &Value, text: &str) -> bool {
        let definition =
            json!({"name": "t", "inputSchema": {"properties": {parameter: schema, "limit": {}}}});
        let tool = Tool::from_json(&definition.to_string()).expect("a valid tool");
        let known = |name: &str| tool.parameters.iter().map(String::as_str).find(|known| *known == name);
        refuse(&tool, &[Value::String(text.to_owned())], Language::Python, known).is_err()
    }

    #[test]
    fn text_of_an_object_is_refused_unless_the_parameter_may_take_it() {
        let (text, other) = (json!({"type": "string"}), r#"{"other": 1}"#);
        for parameter in ["path", "file_path", "id", "name", "url", "cursor", "contented"] {
            assert!(is_refused(parameter, &text, other), "{parameter}");
            assert!(is_refused(parameter, &text, "{}"), "{parameter}, no members");
            assert!(!is_refused(parameter, &text, "{other}"), "{parameter}, other text");
            assert!(!is_refused(parameter, &text, "[1]"), "{parameter}, a list");
        }
        for parameter in ["content", "file_content", "fileContent", "jsonData", "json", "sql-query"] {
            assert!(!is_refused(parameter, &text, other), "{parameter}");
            assert!(
                is_refused(parameter, &text, r#"{"limit": 1}"#),
                "{parameter}, the name of another parameter"
            );
        }
        for (key, value) in
            [("description", "A JSON object"), ("contentMediaType", "application/json"), ("format", "json")]
        {
            assert!(!is_refused("path", &json!({key: value}), other), "{key}");
        }
    }
}
