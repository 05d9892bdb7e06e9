//! Tools of upstream servers with parameters that are sent as HTTP headers (`x-mcp-header` in their schemas).

use std::collections::{BTreeMap, HashMap};

use http::HeaderName;
use lockhouse_base::json;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::client::bounded_list::BoundedList;

const ANNOTATION: &str = "x-mcp-header";
/// How the name of a header with an argument begins.
const PREFIX: &str = "mcp-param-";
/// Maximum total size in bytes of the names in the annotations of all tools of a connection. Tools beyond it are left out.
/// Bound: upstream servers.
const NAMES_BYTES_MAX: usize = 1024 * 1024;

/// The tools of one connection that have header parameters, by their names.
#[derive(Default)]
pub struct HeaderTools(Mutex<HashMap<String, Vec<HeaderParameter>>>);

/// A parameter that is sent as a header.
#[derive(Debug, PartialEq)]
struct HeaderParameter {
    /// The names of the properties from the arguments to the value.
    path: Vec<String>,
    header: HeaderName,
}

impl HeaderParameter {
    fn bytes(&self) -> usize {
        self.header.as_str().len() + self.path.iter().map(String::len).sum::<usize>()
    }
}

/// The fields of a tool that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default)]
    input_schema: Map<String, Value>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: BoundedList<'a>,
}

impl HeaderTools {
    /// Takes note of the header parameters in a result of `tools/list`. Returns the list without the tools whose annotations
    /// are invalid.
    pub fn accept(&self, list: String) -> String {
        // Most servers have none.
        if !list.contains(ANNOTATION) {
            return list;
        }
        let Ok(page) = serde_json::from_str::<Page<'_>>(&list) else { return list };
        let BoundedList { items, has_more } = page.tools;
        let usable: Vec<_> = items.iter().copied().filter(|tool| self.accept_tool(tool.get())).collect();
        // If the list was truncated, only the tools that were kept are returned.
        if usable.len() == items.len() && !has_more {
            return list;
        }
        tracing::warn!(
            "left out {} tools that ask for headers in an invalid way",
            items.len() - usable.len()
        );
        let rewritten = || {
            let usable = to_raw_value(&usable).ok()?;
            let mut page: BTreeMap<String, &RawValue> = serde_json::from_str(&list).ok()?;
            page.insert("tools".into(), &usable);
            serde_json::to_string(&page).ok()
        };
        rewritten().unwrap_or_else(|| r#"{"tools":[]}"#.to_owned())
    }

    /// Takes note of the header parameters of a tool. Returns whether they are valid and within the limit.
    fn accept_tool(&self, tool: &str) -> bool {
        if !tool.contains(ANNOTATION) {
            return true;
        }
        if json::check_bounded(tool.as_bytes(), usize::MAX).is_some() {
            return false;
        }
        let Ok(Tool { name, input_schema }) = serde_json::from_str(tool) else { return false };
        let mut found = Vec::new();
        if collect(&input_schema, Some(&mut Vec::new()), &mut found).is_none() {
            return false;
        }
        let mut tools = self.0.lock();
        tools.remove(&name);
        let bytes =
            |parameters: &Vec<HeaderParameter>| parameters.iter().map(HeaderParameter::bytes).sum::<usize>();
        let used: usize = tools.iter().map(|(name, parameters)| name.len() + bytes(parameters)).sum();
        let fits = used + name.len() + bytes(&found) <= NAMES_BYTES_MAX;
        if fits {
            tools.insert(name, found);
        }
        fits
    }

    /// Returns the headers of a call of `tool`, with their values.
    pub(super) fn values(&self, tool: &str, arguments: &RawValue) -> Vec<(HeaderName, String)> {
        let tools = self.0.lock();
        let Some(parameters) = tools.get(tool) else { return Vec::new() };
        let Ok(arguments) = serde_json::from_str::<Value>(arguments.get()) else { return Vec::new() };
        let value = |parameter: &HeaderParameter| {
            let value = parameter.path.iter().try_fold(&arguments, |value, name| value.get(name))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((parameter.header.clone(), text))
        };
        parameters.iter().filter_map(value).collect()
    }
}

/// Collects the annotations of a schema in `found`. `path` has the names of the properties that lead to it from the root;
/// `None` if something else leads to it. Returns `None` if an annotation is invalid: it must name a header that no other
/// parameter has, in a property of type `string`, `integer` or `boolean` to which only properties lead.
fn collect(
    schema: &Map<String, Value>,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParameter>,
) -> Option<()> {
    for (keyword, value) in schema {
        match keyword.as_str() {
            ANNOTATION => {
                let path = path.as_deref().filter(|path| !path.is_empty())?.clone();
                let name = value.as_str().filter(|name| !name.is_empty())?;
                let header = HeaderName::try_from(format!("{PREFIX}{name}")).ok()?;
                let is_type = matches!(schema.get("type")?.as_str()?, "string" | "integer" | "boolean");
                if !is_type || found.iter().any(|other| other.header == header) {
                    return None;
                }
                found.push(HeaderParameter { path, header });
            }
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    let Value::Object(property) = property else { continue };
                    if let Some(path) = &mut path {
                        path.push(name.clone());
                    }
                    collect(property, path.as_deref_mut(), found)?;
                    path.as_deref_mut().and_then(Vec::pop);
                }
            }
            // What is named here is a name, and not a keyword.
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .try_for_each(|(_, schema)| collect_any(schema, found))?;
            }
            // Values, and not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => collect_any(value, found)?,
        }
    }
    Some(())
}

/// Returns `None` if a part of a schema to which more than properties lead has an annotation.
fn collect_any(part: &Value, found: &mut Vec<HeaderParameter>) -> Option<()> {
    match part {
        Value::Object(schema) => collect(schema, None, found),
        Value::Array(parts) => parts.iter().try_for_each(|part| collect_any(part, found)),
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stays_as_it_is_but_for_tools_with_invalid_annotations() {
        let tool = |name: &str, more: &str| {
            format!(r#"{{"name": "{name}", "inputSchema": {{{more}}}, "ours": 1.0}}"#)
        };
        let annotated =
            |name: &str| format!(r#""properties": {{"a": {{"type": "string", "x-mcp-header": "{name}"}}}}"#);
        for (schema, is_valid) in [
            (String::new(), true),
            (annotated("A"), true),
            (annotated(""), false),
            (annotated("a b"), false),
            (r#""x-mcp-header": "A""#.to_owned(), false),
            (r#""properties": {"a": {"type": "number", "x-mcp-header": "A"}}"#.to_owned(), false),
            (r#""properties": {"a": {"x-mcp-header": "A"}}"#.to_owned(), false),
            (r#""properties": {"a": {"type": "string", "x-mcp-header": 1}}"#.to_owned(), false),
            (r#""properties": {"x-mcp-header": {"type": "string"}}"#.to_owned(), true),
            (format!(r#""properties": {{"b": {{{}}}}}"#, annotated("A")), true),
            (format!(r#""items": {{{}}}"#, annotated("A")), false),
            (format!(r#""anyOf": [{{{}}}]"#, annotated("A")), false),
            (format!(r#""$defs": {{"default": {{{}}}}}"#, annotated("A")), false),
            (format!(r#""default": {{{}}}"#, annotated("A")), true),
            (
                r#""properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}"#
                    .to_owned(),
                false,
            ),
        ] {
            let page = format!(r#"{{"tools": [{}, {}], "nextCursor": "n"}}"#, tool("plain", ""), tool("t", &schema));
            let accepted = HeaderTools::default().accept(page.clone());
            if is_valid {
                assert_eq!(accepted, page);
                continue;
            }
            let accepted: Value = serde_json::from_str(&accepted).expect("JSON");
            let expected = format!(r#"{{"tools": [{}], "nextCursor": "n"}}"#, tool("plain", ""));
            assert_eq!(accepted, serde_json::from_str::<Value>(&expected).expect("JSON"), "{schema}");
        }
    }

    #[test]
    fn the_names_of_all_tools_together_are_bounded() {
        let tools = HeaderTools::default();
        let long = "x".repeat(30_000);
        let tool = |number: usize| {
            let property = format!(r#""{long}": {{"type": "string", "x-mcp-header": "A"}}"#);
            format!(r#"{{"name": "t{number}", "inputSchema": {{"properties": {{{property}}}}}}}"#)
        };
        let accepted = (0..100).filter(|number| tools.accept_tool(&tool(*number))).count();
        assert_eq!(accepted, NAMES_BYTES_MAX / (long.len() + "mcp-param-a".len() + 3));
        assert!(tools.accept_tool(&tool(0)), "the same tool again takes no more");
    }
}
