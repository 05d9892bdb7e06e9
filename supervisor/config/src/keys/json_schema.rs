//! Generates the JSON schema of the declared configuration tables and keys.

use serde_json::{Map, Value, json};

use super::{KeySpec, TableSpec};

impl KeySpec {
    pub(crate) fn to_schema(&self) -> Value {
        let mut schema = self.schema.clone();
        let Value::Object(keywords) = &mut schema else { return schema };
        if let Some(range) = &self.range {
            range.add_to_schema(keywords);
        }
        if !self.description.is_empty() {
            keywords.insert("description".into(), super::rendering::strip_links(&self.description).into());
        }
        let default = self.default.as_deref().filter(|_| !self.is_required);
        if let Some(default) = default.and_then(toml_to_json) {
            keywords.insert("default".into(), default);
        }
        schema
    }
}

impl TableSpec {
    pub(crate) fn to_schema(&self) -> Value {
        let keys = self.keys.iter().map(|key| (key.name.to_owned(), key.to_schema()));
        let tables = self.tables.iter().map(|table| (table.name().to_owned(), table.to_schema()));
        let properties: Map<String, Value> = keys.chain(tables).collect();
        let required: Vec<&str> =
            self.keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
        let mut schema = json!({
            "type": "object", "description": super::rendering::strip_links(self.description),
            "additionalProperties": false, "properties": properties,
        });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        schema
    }
}

/// Converts the default of a key from TOML to JSON. The numbers, strings and lists that are used as defaults look the
/// same in both formats. `None` for any other TOML.
fn toml_to_json(toml: &str) -> Option<Value> {
    serde_json::from_str(toml).ok()
}
