//! Reads from a tool's JSON Schema which members its arguments have, in which order, and which of them are
//! required.
//!
//! Schemas come from upstream servers. Only the parts that describe members of the call's arguments are read,
//! within fixed limits.
//!
//! The parsed form of schemas in the tool catalogue cannot be used here. The parsed form treats a member as optional
//! if any alternative omits the member, and drops schemas that are too large. A prompt, however, must show the
//! members that may be required before all other members.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Maximum number of subschemas that are combined into the schema of one value.
pub(super) const PARTS_MAX: usize = 64;
/// Maximum number of property names and subschemas that are read from a tool's JSON Schema for one call.
pub(super) const LOOKS_MAX: usize = 50_000;

/// The JSON Schema of one value: the value's own schema, together with all subschemas that it references or
/// combines.
pub(super) struct MemberSchema<'s> {
    /// The schema of all arguments of the tool. References are resolved in it.
    root: &'s Value,
    parts: Vec<&'s Map<String, Value>>,
}

impl<'s> MemberSchema<'s> {
    /// Returns the schema of all arguments.
    pub(super) fn new(root: &'s Value) -> Self {
        Self::merged(root, [root])
    }

    /// Returns the given schemas together with all subschemas that they reference or combine.
    fn merged(root: &'s Value, schemas: impl IntoIterator<Item = &'s Value>) -> Self {
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

    /// Returns those names in `members` that the schema lists, required ones first and otherwise in the order of
    /// the schema. Also returns how many of them are required. `reads` is the number of reads from the schema that
    /// are left, and is reduced here. If they do not suffice, returns no names.
    pub(super) fn ordered_names(
        &self,
        members: &Map<String, Value>,
        reads: &mut usize,
    ) -> (Vec<&'s str>, usize) {
        let required = |part: &&'s Map<String, Value>| part.get("required").and_then(Value::as_array);
        let properties = |part: &&'s Map<String, Value>| part.get("properties").and_then(Value::as_object);
        let count: usize = self.parts.iter().filter_map(required).map(Vec::len).sum::<usize>()
            + self.parts.iter().filter_map(properties).map(Map::len).sum::<usize>();
        let Some(left) = reads.checked_sub(count) else {
            *reads = 0;
            return (Vec::new(), 0);
        };
        *reads = left;
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

    /// Returns the schema of the object member with this name.
    pub(super) fn member(&self, name: &str) -> Self {
        let member = |part: &&'s Map<String, Value>| part.get("properties")?.get(name);
        Self::merged(self.root, self.parts.iter().filter_map(member))
    }

    /// Returns the schema of the list element at this index.
    pub(super) fn element(&self, index: usize) -> Self {
        let element = |part: &&'s Map<String, Value>| {
            let items = part.get("items");
            let by_place = part.get("prefixItems").or(items).and_then(Value::as_array);
            by_place.and_then(|all| all.get(index)).or(items)
        };
        Self::merged(self.root, self.parts.iter().filter_map(element))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ordered_names<'s>(schema: &MemberSchema<'s>, members: &Value) -> (Vec<&'s str>, usize) {
        let mut reads = LOOKS_MAX;
        schema.ordered_names(members.as_object().expect("an object"), &mut reads)
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
        let params = MemberSchema::new(&root).member("params");
        assert_eq!(ordered_names(&params, &members), (vec!["path", "mode", "note"], 2));
        assert_eq!(ordered_names(&params, &json!({"note": 1})), (vec!["note"], 0));
        let element = MemberSchema::new(&root).member("edits").element(7);
        assert_eq!(ordered_names(&element, &members), (vec!["path", "mode", "note"], 2));
        assert_eq!(ordered_names(&MemberSchema::new(&root).member("other"), &members), (vec![], 0));
    }

    #[test]
    fn a_hostile_schema_costs_no_more_than_its_bounds() {
        let of_itself = json!({"$ref": "#", "allOf": vec![json!({"$ref": "#"}); 10_000]});
        assert!(MemberSchema::new(&of_itself).parts.len() <= PARTS_MAX);
        let required: Vec<String> = (0..=LOOKS_MAX).map(|number| number.to_string()).collect();
        let (root, mut reads) = (json!({"required": required}), LOOKS_MAX);
        let members = json!({"1": 1});
        let members = members.as_object().expect("an object");
        assert_eq!((MemberSchema::new(&root).ordered_names(members, &mut reads), reads), ((vec![], 0), 0));
    }
}
