//! What of a search is shown.

use serde_json::{Value, json};

/// As many of the entries, in their order, as fit.
pub(super) fn first_of(name: &str, entries: Vec<Value>, limit: usize) -> Value {
    let (count, mut bytes) = (entries.len(), 0);
    let fits = |entry: &Value| {
        bytes += entry.to_string().len();
        bytes <= limit
    };
    let shown: Vec<Value> = entries.into_iter().take_while(fits).collect();
    let left_out = count - shown.len();
    let mut result = json!({ name: shown });
    if left_out > 0 {
        result["left_out"] = left_out.into();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let entries = vec![json!("aaaa"), json!("bbbb"), json!("cccc")];
        assert_eq!(first_of("tools", entries, 12), json!({"tools": ["aaaa", "bbbb"], "left_out": 1}));
    }
}
