//! What a tool's schema says of the members of its arguments: which it names, in which order, and which are required.
//!
//! A schema comes from an upstream server. Only what speaks of members that are there is read, and no more than fits a bound.
//!
//! The catalogue reads schemas as types, for signatures. That would not do here: of alternatives, a type has those members
//! as optional that any of them leaves out, and where a schema is too large for a type it says nothing. A person has to see
//! first whatever may be required.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Parts of a schema that speak of one value.
pub(super) const PARTS_MAX: usize = 64;
/// Names and parts that are looked at in the schema of one call.
pub(super) const LOOKS_MAX: usize = 50_000;

/// What a schema says of one value: the schema itself, what it refers to, and what it combines.
pub(super) struct Schema<'s> {
    root: &'s Value,
    parts: Vec<&'s Map<String, Value>>,
}

impl<'s> Schema<'s> {
    /// The schema of all arguments.
    pub(super) fn of(root: &'s Value) -> Self {
        Self::all(root, [root])
    }

    fn all(root: &'s Value, schemas: impl IntoIterator<Item = &'s Value>) -> Self {
        let mut schemas: Vec<&Value> = schemas.into_iter().take(PARTS_MAX).collect();
        let (mut parts, mut next) = (Vec::<&Map<String, Value>>::new(), 0);
        while let Some(&schema) = schemas.get(next) {
            next += 1;
            let Value::Object(schema) = schema else { continue };
            // A schema may refer to itself.
            if parts.len() == PARTS_MAX || parts.iter().any(|part| std::ptr::eq(*part, schema)) {
                continue;
            }
            parts.push(schema);
            let address = schema.get("$ref").and_then(Value::as_str);
            schemas.extend(address.and_then(|address| root.pointer(address.strip_prefix('#')?)));
            for key in ["allOf", "anyOf", "oneOf"] {
                let options = schema.get(key).and_then(Value::as_array);
                let room = (2 * PARTS_MAX).saturating_sub(schemas.len());
                schemas.extend(options.into_iter().flatten().take(room));
            }
        }
        Self { root, parts }
    }

    /// The names among these members that the schema has: the required ones first, in its order, and how many they are.
    /// None once too many names were looked at.
    pub(super) fn names(&self, members: &Map<String, Value>, looks: &mut usize) -> (Vec<&'s str>, usize) {
        let required = |part: &&'s Map<String, Value>| part.get("required").and_then(Value::as_array);
        let properties = |part: &&'s Map<String, Value>| part.get("properties").and_then(Value::as_object);
        let count: usize = self.parts.iter().filter_map(required).map(Vec::len).sum::<usize>()
            + self.parts.iter().filter_map(properties).map(Map::len).sum::<usize>();
        let Some(left) = looks.checked_sub(count) else {
            *looks = 0;
            return (Vec::new(), 0);
        };
        *looks = left;
        let required: Vec<&str> =
            self.parts.iter().filter_map(required).flatten().filter_map(Value::as_str).collect();
        let is_required: HashSet<&str> = required.iter().copied().collect();
        let properties = self.parts.iter().filter_map(properties).flat_map(Map::keys).map(String::as_str);
        let mut seen = HashSet::new();
        let mut names: Vec<&str> = properties
            .chain(required)
            .filter(|name| members.contains_key(*name) && seen.insert(*name))
            .collect();
        names.sort_by_key(|name| !is_required.contains(name));
        let required = names.iter().filter(|name| is_required.contains(*name)).count();
        (names, required)
    }

    /// Of the member with this name.
    pub(super) fn member(&self, name: &str) -> Self {
        let member = |part: &&'s Map<String, Value>| part.get("properties")?.get(name);
        Self::all(self.root, self.parts.iter().filter_map(member))
    }

    /// Of the element at this place of a list.
    pub(super) fn element(&self, index: usize) -> Self {
        let element = |part: &&'s Map<String, Value>| {
            let items = part.get("items");
            let by_place = part.get("prefixItems").or(items).and_then(Value::as_array);
            by_place.and_then(|all| all.get(index)).or(items)
        };
        Self::all(self.root, self.parts.iter().filter_map(element))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names<'s>(schema: &Schema<'s>, members: &Value) -> (Vec<&'s str>, usize) {
        let mut looks = LOOKS_MAX;
        schema.names(members.as_object().expect("an object"), &mut looks)
    }

    #[test]
    fn members_are_named_through_references_and_combinations() {
        let root = json!({
            "properties": {"params": {"$ref": "#/$defs/Params"}, "edits": {"items": {"$ref": "#/$defs/Params"}}},
            "$defs": {"Params": {
                "allOf": [{"properties": {"note": {}, "path": {}}}, {"required": ["path"]}],
                "anyOf": [{"properties": {"mode": {}}, "required": ["mode"]}, {"type": "null"}, {"$ref": "#/$defs/Params"}],
            }},
        });
        let members = json!({"a000": 1, "note": 1, "mode": 1, "path": 1});
        let params = Schema::of(&root).member("params");
        assert_eq!(names(&params, &members), (vec!["path", "mode", "note"], 2));
        assert_eq!(names(&params, &json!({"note": 1})), (vec!["note"], 0));
        let element = Schema::of(&root).member("edits").element(7);
        assert_eq!(names(&element, &members), (vec!["path", "mode", "note"], 2));
        assert_eq!(names(&Schema::of(&root).member("other"), &members), (vec![], 0));
    }

    #[test]
    fn a_hostile_schema_costs_no_more_than_its_bounds() {
        let of_itself = json!({"$ref": "#", "allOf": vec![json!({"$ref": "#"}); 10_000]});
        assert!(Schema::of(&of_itself).parts.len() <= PARTS_MAX);
        let required: Vec<String> = (0..=LOOKS_MAX).map(|number| number.to_string()).collect();
        let (root, mut looks) = (json!({"required": required}), LOOKS_MAX);
        let members = json!({"1": 1});
        let members = members.as_object().expect("an object");
        assert_eq!((Schema::of(&root).names(members, &mut looks), looks), ((vec![], 0), 0));
    }
}
