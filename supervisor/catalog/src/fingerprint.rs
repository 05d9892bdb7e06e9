//! Whether two definitions of a tool say the same.

use data_encoding::HEXLOWER;
use lockhouse_protocol::ServerName;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Tool;

/// SHA-256 of a definition, in hexadecimal. The order of keys does not count: some servers change it with each start.
pub(super) fn fingerprint(definition: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, definition);
    HEXLOWER.encode(&hasher.finalize())
}

/// The text of a definition with so many values, of which nothing but what was compared can be read: where a member is there twice, a reader may
/// take another one than the fingerprint has, so that text is written anew.
pub(super) fn as_compared(text: &str, written: usize, definition: &Value) -> Box<str> {
    if written == values(definition) { text.into() } else { definition.to_string().into() }
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(values).sum(),
        Value::Array(elements) => elements.iter().map(values).sum(),
        _ => 0,
    }
}

/// SHA-256 of tools of a server, by name and definition, in hexadecimal, whatever their order. All tools are told from a
/// selection that has all of them.
pub fn digest<'a>(server: &ServerName, is_all: bool, tools: impl Iterator<Item = &'a Tool>) -> String {
    let mut tools: Vec<_> = tools.map(|tool| (tool.name.as_str(), &tool.fingerprint)).collect();
    tools.sort_unstable();
    let mut hasher = Sha256::new();
    let whole = if is_all { "all" } else { "some" };
    // Neither names nor fingerprints have spaces or ends of lines.
    hasher.update(format!("{whole} tools of {server}\n"));
    for (name, fingerprint) in tools {
        hasher.update(format!("{name} {fingerprint}\n"));
    }
    HEXLOWER.encode(&hasher.finalize())
}

/// Every value with its kind and its length, so that no two definitions are written alike.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.update(format!("o{}:", members.len()));
            for (name, member) in members {
                hasher.update(format!("{}:{name}", name.len()));
                feed(hasher, member);
            }
        }
        Value::Array(elements) => {
            hasher.update(format!("a{}:", elements.len()));
            elements.iter().for_each(|element| feed(hasher, element));
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
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
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
    fn what_is_passed_on_has_nothing_that_was_not_compared() {
        let twice =
            r#"{"name":"a","description":"hidden","inputSchema":{"x":1,"x":2},"description":"harmless"}"#;
        let passed_on = |text: &str| {
            let (value, values) = json::counted_tree(text.as_bytes(), usize::MAX).expect("JSON");
            as_compared(text, values, &value)
        };
        assert_eq!(&*passed_on(twice), r#"{"name":"a","description":"harmless","inputSchema":{"x":2}}"#);
        let once = r#"{ "name" : "a", "x": [1.0, {}] }"#;
        assert_eq!(&*passed_on(once), once);
    }

    #[test]
    fn a_definition_that_two_readers_would_read_differently_is_no_tool() {
        let tool = |schema: &str| {
            Tool::from_json(&format!(r#"{{"name":"a","inputSchema":{{"properties":{{"x":{schema}}}}}}}"#))
        };
        assert!(tool(r#"{"type":"string"}"#).is_some());
        for key in ["$serde_json::private::RawValue", "\\u0024serde_json::private::RawValue"] {
            // Read in one way it is the same as the schema above, in another it is a text with whatever else it says.
            let read = format!(r#"{{"{key}":"{{\"type\":\"IMPORTANT\",\"type\":\"string\"}}"}}"#);
            assert!(tool(&read).is_none(), "{key}");
        }
    }
}
