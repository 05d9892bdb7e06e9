//! A `tools/call` result as code gets it.

use lockhouse_protocol::FailureCode;
use serde_json::{Value, json};

/// Characters of a tool's own error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;

/// The envelope for the engine: `{"structured"}` when there is any, else `{"text"}` for one text block, else
/// `{"content"}`. A text is never guessed to be JSON.
pub(super) fn envelope(mut result: Value) -> Result<Value, (FailureCode, String)> {
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err((FailureCode::ToolFailed, error_text(&result)));
    }
    if result.get("resultType").and_then(Value::as_str) == Some("input_required") {
        let message = "the tool asks for more input from a person, which a program cannot give".to_owned();
        return Err((FailureCode::ToolFailed, message));
    }
    if let Some(structured) =
        result.get_mut("structuredContent").map(Value::take).filter(|value| !value.is_null())
    {
        return Ok(json!({ "structured": structured }));
    }
    let content = result.get_mut("content").map(Value::take).unwrap_or_else(|| json!([]));
    if let [block] = content.as_array().map(Vec::as_slice).unwrap_or_default()
        && block.get("type").and_then(Value::as_str) == Some("text")
        && let Some(text) = block.get("text")
    {
        return Ok(json!({ "text": text }));
    }
    Ok(json!({ "content": content }))
}

fn error_text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    match texts.is_empty() {
        true => "the tool failed and did not say why".into(),
        false => texts.join("\n").chars().take(ERROR_CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_content_wins_and_text_stays_text() {
        let text = json!({"type": "text", "text": "{\"a\": 1}"});
        assert_eq!(envelope(json!({"content": [text]})), Ok(json!({"text": "{\"a\": 1}"})));
        let both = json!({"content": [text], "structuredContent": {"a": 1}});
        assert_eq!(envelope(both), Ok(json!({"structured": {"a": 1}})));
        let two = json!({"content": [text, text]});
        assert_eq!(envelope(two.clone()), Ok(two));
        let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(envelope(failed), Err((FailureCode::ToolFailed, "no".into())));
    }
}
