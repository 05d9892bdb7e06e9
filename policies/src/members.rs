//! Which arguments a tool's schema declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Objects within objects that are looked into.
const DEPTH_MAX: usize = 8;

/// Keywords by which a schema can admit members that its `properties` do not name.
const OPEN: [&str; 8] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

/// The members of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// The schema does not say which there are, or admits others.
    Any,
    /// These and no others.
    Named(BTreeMap<String, Members>),
}

impl Members {
    /// Reads a schema. JSON Schema permits further members unless it is told not to; what servers mean by a list of
    /// properties is that it is the whole list.
    #[must_use]
    pub fn of_schema(schema: &Value) -> Self {
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
            // A condition on what is inside of a list is one on each of its values.
            (None, Some(items)) => Self::at_depth(items, depth + 1),
            (None, None) => Self::Any,
        }
    }

    /// Whether there can be an argument of this name; dots lead into objects, or belong to the name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let Self::Named(members) = self else { return true };
        let inside =
            |(at, _): (usize, &str)| members.get(&name[..at]).is_some_and(|inner| inner.has(&name[at + 1..]));
        members.contains_key(name) || name.match_indices('.').any(inside)
    }

    /// The names of the outermost ones.
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
    fn only_a_closed_list_of_properties_excludes_a_name() {
        let closed = json!({"properties": {"path": {"type": "string"}, "filter": {"properties": {"owner": {}}},
            "rows": {"items": {"properties": {"id": {}}}}, "a.b": {}}});
        let closed = Members::of_schema(&closed);
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
            assert!(Members::of_schema(&open).has("pth"), "{open}");
        }
        assert!(!Members::of_schema(&json!({"properties": {}})).has("pth"));
    }
}
