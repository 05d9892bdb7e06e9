//! Fingerprints of tool definitions: a SHA-256 that does not depend on the order of keys in the JSON.

use data_encoding::HEXLOWER;
use lockhouse_protocol::ServerName;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Tool;

/// Returns the SHA-256 of a tool definition, in hexadecimal. It does not depend on the order of keys, which some
/// upstream servers change at every start.
pub(super) fn fingerprint(definition: &Value) -> String {
    let mut hasher = Sha256::new();
    hash_value(&mut hasher, definition);
    HEXLOWER.encode(&hasher.finalize())
}

/// Returns the JSON text of a tool definition without duplicate keys. Duplicate keys are unsafe: the
/// fingerprint covers only one of their values, and another parser may use the other value. If `text`
/// contains more values (`value_count`) than the parsed `definition`, it has duplicate keys, and this
/// function serializes `definition` instead.
pub(super) fn canonical_text(text: &str, value_count: usize, definition: &Value) -> Box<str> {
    if value_count == count_values(definition) { text.into() } else { definition.to_string().into() }
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count_values).sum(),
        Value::Array(elements) => elements.iter().map(count_values).sum(),
        _ => 0,
    }
}

/// Returns the SHA-256 of the names and definitions of an upstream server's tools, in hexadecimal. It does not depend
/// on the order of the tools. `is_all` tells whether `tools` are all tools of the server or only a selection. The
/// digest of all tools differs from the digest of a selection, even if both contain the same tools.
pub fn tools_digest<'a>(server: &ServerName, is_all: bool, tools: impl Iterator<Item = &'a Tool>) -> String {
    let mut tools: Vec<_> = tools.map(|tool| (tool.name.as_str(), &tool.fingerprint)).collect();
    tools.sort_unstable();
    let mut hasher = Sha256::new();
    let whole = if is_all { "all" } else { "some" };
    // Names and fingerprints contain neither spaces nor line breaks, so the text is unambiguous.
    hasher.update(format!("{whole} tools of {server}\n"));
    for (name, fingerprint) in tools {
        hasher.update(format!("{name} {fingerprint}\n"));
    }
    HEXLOWER.encode(&hasher.finalize())
}

/// Adds a JSON value to the hash. Each value in it is hashed with its kind and length, so that different definitions
/// have different hashes.
fn hash_value(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.update(format!("o{}:", members.len()));
            for (name, member) in members {
                hasher.update(format!("{}:{name}", name.len()));
                hash_value(hasher, member);
            }
        }
        Value::Array(elements) => {
            hasher.update(format!("a{}:", elements.len()));
            elements.iter().for_each(|element| hash_value(hasher, element));
        }
        scalar => {
            let text = scalar.to_string();
            hasher.update(format!("s{}:{text}", text.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_base::json;
    use serde_json::json;

    use super::*;

    #[test]
    fn fingerprints_depend_on_everything_but_key_order() {
        let one = fingerprint(&json!({"name": "a", "inputSchema": {"x": [1, 2], "y": "z"}}));
        let other: Value =
            serde_json::from_str(r#"{"inputSchema": {"y": "z", "x": [1, 2]}, "name": "a"}"#).expect("JSON");
        assert_eq!(one, fingerprint(&other));
        for changed in [
            json!({"name": "a", "inputSchema": {"x": [2, 1], "y": "z"}}),
            json!({"name": "a", "inputSchema": {"x": [1, 2], "y": "z "}}),
            json!({"name": "a", "inputSchema": {"x": [1, 2]}, "y": "z"}),
            json!({"name": "a", "inputSchema": {"x": ["1", 2], "y": "z"}}),
        ] {
            assert_ne!(one, fingerprint(&changed), "{changed}");
        }
    }

    #[test]
    fn duplicate_keys_are_removed_from_the_definition() {
        let twice =
            r#"{"name":"a","description":"hidden","inputSchema":{"x":1,"x":2},"description":"harmless"}"#;
        let passed_on = |text: &str| {
            let (value, values) = json::parse_counted(text.as_bytes(), usize::MAX).expect("JSON");
            canonical_text(text, values, &value)
        };
        assert_eq!(&*passed_on(twice), r#"{"name":"a","description":"harmless","inputSchema":{"x":2}}"#);
        let once = r#"{ "name" : "a", "x": [1.0, {}] }"#;
        assert_eq!(&*passed_on(once), once);
    }

    #[test]
    fn ambiguous_definitions_are_rejected() {
        let tool = |schema: &str| {
            Tool::from_json(&format!(r#"{{"name":"a","inputSchema":{{"properties":{{"x":{schema}}}}}}}"#))
        };
        assert!(tool(r#"{"type":"string"}"#).is_some());
        for key in ["$serde_json::private::RawValue", "\\u0024serde_json::private::RawValue"] {
            // Depending on which duplicate key a parser uses, this text is the schema above or a schema for text with
            // arbitrary content.
            let read = format!(r#"{{"{key}":"{{\"type\":\"IMPORTANT\",\"type\":\"string\"}}"}}"#);
            assert!(tool(&read).is_none(), "{key}");
        }
    }
}
