//! What of an answer is shown to a model: all of it up to a limit, then its beginning and how much there is.

use serde_json::{Value, json};

use crate::execution::Answer;

/// The answer with value, stdout and stderr of at most `limit` bytes each.
pub(super) fn shorten(answer: &Answer, limit: usize) -> Value {
    let mut json = answer.to_json();
    let mut truncated = json!({});
    for part in ["value", "stdout", "stderr"] {
        let Some(text) = json.get(part).map(as_text).filter(|text| text.len() > limit) else { continue };
        let shown = beginning(&text, limit);
        truncated[part] = json!({"bytes": text.len(), "shown": shown.len()});
        json[part] = shown.into();
    }
    if truncated.as_object().is_some_and(|parts| !parts.is_empty()) {
        truncated["hint"] = "return or print less: filter, aggregate or slice in the code".into();
        json["truncated"] = truncated;
    }
    json
}

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

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn beginning(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_never_splits_a_character() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", 3), "aé");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let entries = vec![json!("aaaa"), json!("bbbb"), json!("cccc")];
        assert_eq!(first_of("tools", entries, 12), json!({"tools": ["aaaa", "bbbb"], "left_out": 1}));
    }
}
