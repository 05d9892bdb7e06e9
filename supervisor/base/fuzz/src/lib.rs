//! Invariants of reading JSON text that must hold for every input. The function takes bytes, panics when an invariant is violated, and returns the kinds of
//! results that the input produced. An ordinary test passes the seeds, and changes of them, to the same function, and checks that these inputs cover all kinds
//! of results.

mod seeds;

use std::collections::BTreeSet;

use lockhouse_base::json::{self, JsonFault, JsonText, MessageEnds, member_value};
use serde_json::Value;

pub use seeds::seeds;

/// The names of the kinds of results that an input produced.
pub type Coverage = BTreeSet<String>;

/// Few, so that short inputs exceed it.
const VALUES_MAX: usize = 150;
/// The length in bytes of the shortest text for a value that is left out.
const ELLIPSIS_BYTES: usize = 5;
/// Maximum number of entries about places at which something was left out: eight places, and the number of the others.
const OMISSIONS_MAX: usize = 9;

/// Counts the values of a JSON text, reads its entries and truncates it. The first byte of the input is the maximum length after the truncation.
pub fn json_text(bytes: &[u8]) -> Coverage {
    let [limit, json @ ..] = bytes else { return Coverage::new() };
    let tree = serde_json::from_slice::<Value>(json).ok();
    let mut reached = Coverage::from([count(json, tree.as_ref()).to_owned()]);
    let Ok(text) = std::str::from_utf8(json) else { return reached };
    let entries = JsonText::new(text, 16);
    let count = entries.entries(entries.whole()).count();
    assert!(count <= text.len(), "each entry has a byte");
    let Some(tree) = tree.filter(|_| json::check_bounded(json, usize::MAX).is_none()) else { return reached };
    let is_counted = match &tree {
        Value::Array(items) => items.len() == count,
        // A tree has one member of a name.
        Value::Object(members) => members.len() <= count,
        _ => count == 0,
    };
    assert!(is_counted, "{count} entries");
    reached.insert(truncate(text, &tree, usize::from(*limit)).to_owned());
    reached.insert(ids(json, &tree).to_owned());
    reached
}

/// Counts the values within bounds. A parser without bounds must agree that the text is valid.
fn count(json: &[u8], tree: Option<&Value>) -> &'static str {
    let counted = json::count(json, VALUES_MAX);
    assert!(counted.values <= VALUES_MAX);
    match counted.fault {
        None => {
            assert!(
                tree.is_some_and(|tree| values(tree) <= counted.values),
                "every value of the tree is counted"
            );
            "valid"
        }
        Some(JsonFault::Invalid) => {
            assert!(tree.is_none(), "it can be parsed");
            "invalid"
        }
        Some(JsonFault::TooDeep) => "too deep",
        Some(JsonFault::TooManyValues) => "too many values",
        Some(JsonFault::ReservedKey) => "reserved key",
    }
}

fn values(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

fn truncate(text: &str, tree: &Value, limit: usize) -> &'static str {
    let truncated = json::truncate(text, limit);
    assert!(truncated.json.len() <= limit.max(ELLIPSIS_BYTES), "{} bytes", truncated.json.len());
    assert!(truncated.omissions.len() <= OMISSIONS_MAX);
    let shown = serde_json::from_str::<Value>(&truncated.json).expect("what is shown is valid");
    if truncated.omissions.is_empty() {
        assert_eq!(shown, *tree, "nothing is left out");
        return "whole";
    }
    "truncated"
}

/// Looks for the member `id` in the ends of a message. What is found must be a member of the whole.
fn ids(json: &[u8], tree: &Value) -> &'static str {
    let found = MessageEnds::of(json).members(b"\"id\"").filter_map(member_value::<i64>).count();
    assert!(found == 0 || tree.get("id").is_some(), "an id of something else");
    if found > 0 { "an id" } else { "no id" }
}
