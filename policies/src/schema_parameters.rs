//! The parameters that a tool's JSON Schema declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The maximum depth of nested objects that is read from a schema. The parameters of deeper objects count as unknown.
const DEPTH_MAX: usize = 8;

/// JSON Schema keywords that can permit object members besides those in `properties`.
const OPEN: [&str; 8] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

/// The names of the parameters that a tool's schema declares, or of the members of a parameter that is an
/// object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaParameters {
    /// Any name is possible, because the schema does not list the names or permits other names too.
    Any,
    /// Only these names are possible. The map has, for each name, the possible names of the members of this parameter.
    Named(BTreeMap<String, SchemaParameters>),
}

impl SchemaParameters {
    /// Reads the parameters from a tool's input schema. In JSON Schema, `properties` alone does not exclude other
    /// members. But MCP servers mean `properties` as the complete list, so this function takes it as complete.
    #[must_use]
    pub fn from_schema(schema: &Value) -> Self {
        Self::at_depth(schema, 0)
    }

    fn at_depth(schema: &Value, depth: usize) -> Self {
        let Some(object) = schema.as_object() else { return Self::Any };
        if depth == DEPTH_MAX || is_open(object) {
            return Self::Any;
        }
        match (object.get("properties").and_then(Value::as_object), object.get("items")) {
            (Some(properties), _) => Self::Named(
                properties
                    .iter()
                    .map(|(name, inner)| (name.clone(), Self::at_depth(inner, depth + 1)))
                    .collect(),
            ),
            // A condition on a member of a list's items applies to each item.
            (None, Some(items)) => Self::at_depth(items, depth + 1),
            (None, None) => Self::Any,
        }
    }

    /// Whether the tool can have an argument of this name. A dot in the name leads to a member of an object, or is
    /// part of the name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let Self::Named(members) = self else { return true };
        let inside =
            |(at, _): (usize, &str)| members.get(&name[..at]).is_some_and(|inner| inner.has(&name[at + 1..]));
        members.contains_key(name) || name.match_indices('.').any(inside)
    }

    /// Returns the names of the parameters at the top level; none when any name is possible.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let members = match self {
            Self::Any => None,
            Self::Named(members) => Some(members.keys().map(String::as_str)),
        };
        members.into_iter().flatten()
    }
}

fn is_open(schema: &Map<String, Value>) -> bool {
    let admits_more = match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    admits_more || OPEN.iter().any(|keyword| schema.contains_key(*keyword))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_excluded_only_by_a_complete_list_of_properties() {
        let closed = json!({"properties": {"path": {"type": "string"}, "filter": {"properties": {"owner": {}}},
            "rows": {"items": {"properties": {"id": {}}}}, "a.b": {}}});
        let closed = SchemaParameters::from_schema(&closed);
        for name in ["path", "filter.owner", "rows.id", "filter", "a.b", "path.anything"] {
            assert!(closed.has(name), "{name}");
        }
        for name in ["pth", "filter.ownr", "rows.name", "path2.x", "a"] {
            assert!(!closed.has(name), "{name}");
        }
        for open in [
            json!({}),
            json!(true),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            json!({"properties": {"a": {}}, "anyOf": []}),
            json!({"properties": {"a": {}}, "$ref": "#/x"}),
        ] {
            assert!(SchemaParameters::from_schema(&open).has("pth"), "{open}");
        }
        assert!(!SchemaParameters::from_schema(&json!({"properties": {}})).has("pth"));
    }
}
