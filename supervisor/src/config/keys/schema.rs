//! The JSON schema of declared keys.

use serde_json::{Map, Value, json};

use super::{KeySpec, TableSpec};

impl KeySpec {
    pub(in crate::config) fn to_schema(&self) -> Value {
        let mut schema = self.schema.clone();
        let Value::Object(keywords) = &mut schema else { return schema };
        if let Some(range) = &self.range {
            range.put_in_schema(keywords);
        }
        if !self.about.is_empty() {
            keywords.insert("description".into(), super::reference::plain(&self.about).into());
        }
        let default = self.default.as_deref().filter(|_| !self.is_required);
        if let Some(default) = default.and_then(json_of) {
            keywords.insert("default".into(), default);
        }
        schema
    }
}

impl TableSpec {
    pub(in crate::config) fn to_schema(&self) -> Value {
        let keys = self.keys.iter().map(|key| (key.name.to_owned(), key.to_schema()));
        let tables = self.tables.iter().map(|table| (table.name().to_owned(), table.to_schema()));
        let properties: Map<String, Value> = keys.chain(tables).collect();
        let required: Vec<&str> =
            self.keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
        let mut schema = json!({
            "type": "object", "description": super::reference::plain(self.about),
            "additionalProperties": false, "properties": properties,
        });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        schema
    }
}

/// A default as JSON: TOML writes such numbers, texts and lists likewise.
fn json_of(toml: &str) -> Option<Value> {
    serde_json::from_str(toml).ok()
}
