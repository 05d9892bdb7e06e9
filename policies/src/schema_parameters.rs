//! The parameters that a tool's JSON Schema declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The number of nested objects that are read; parameters below them are unknown.
const DEPTH_MAX: usize = 8;

/// Schema keywords that can admit members besides those in `properties`.
const OPEN: [&str; 8] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

/// The parameters of a tool, or the members of an object among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaParameters {
    /// Any name is possible: the schema does not list the names, or admits others.
    Any,
    /// Exactly these names are possible.
    Named(BTreeMap<String, SchemaParameters>),
}

impl SchemaParameters {
    /// Reads a tool's input schema. By JSON Schema, `properties` alone does not exclude other members; servers mean
    /// it as the complete list, and it is read so here.
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

    /// Whether an argument of this name is possible. A dot in the name leads into an object, or is part of the name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let Self::Named(members) = self else { return true };
        let inside =
            |(at, _): (usize, &str)| members.get(&name[..at]).is_some_and(|inner| inner.has(&name[at + 1..]));
        members.contains_key(name) || name.match_indices('.').any(inside)
    }

    /// Returns the names at the top level; none when any name is possible.
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
