//! A `tools/call` result as code gets it. Content stays text throughout: only its outline is parsed.

use lockhouse_protocol::FailureCode;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Characters of a tool's own error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;
/// Blocks of a failed result that are looked at.
const ERROR_BLOCKS_MAX: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// The envelope for the engine, as JSON: `{"structured"}` when there is any, else `{"text"}` for one text block, else
/// `{"content"}`. A text is never guessed to be JSON.
pub(super) fn envelope(result: &str) -> Result<Vec<u8>, (FailureCode, String)> {
    let failed = |message: &str| (FailureCode::ToolFailed, message.to_owned());
    let outline: Outline<'_> =
        serde_json::from_str(result).map_err(|_| failed("the server's result is not one that MCP knows"))?;
    if outline.is_error == Some(true) {
        return Err(failure_of(error_text(outline.content)));
    }
    if outline.result_type.is_some_and(|kind| kind.get() == "\"input_required\"") {
        return Err(failed("the tool asks for more input from a person, which a program cannot give"));
    }
    if let Some(structured) = outline.structured_content.filter(|value| value.get() != "null") {
        return Ok(wrapped("structured", structured.get()));
    }
    let content = outline.content.map_or("[]", RawValue::get);
    let blocks = blocks(content);
    if let [block] = blocks.as_slice()
        && let Some(text) = text_of(block)
    {
        return Ok(wrapped("text", text.get()));
    }
    Ok(wrapped("content", content))
}

/// The TypeScript SDK reports arguments that do not fit its schema as a failed tool, with the code in the text.
fn failure_of(text: String) -> (FailureCode, String) {
    let code = if text.starts_with("MCP error -32602") {
        FailureCode::InvalidArguments
    } else {
        FailureCode::ToolFailed
    };
    (code, text)
}

fn wrapped(name: &str, json: &str) -> Vec<u8> {
    format!("{{\"{name}\":{json}}}").into_bytes()
}

fn blocks(content: &str) -> Vec<&RawValue> {
    serde_json::from_str(content).unwrap_or_default()
}

/// The JSON string of a text block.
fn text_of<'a>(block: &'a RawValue) -> Option<&'a RawValue> {
    let block: Block<'a> = serde_json::from_str(block.get()).ok()?;
    let is_text = block.kind.is_some_and(|kind| kind.get() == "\"text\"");
    block.text.filter(|text| is_text && text.get().starts_with('"'))
}

fn error_text(content: Option<&RawValue>) -> String {
    let blocks = content.map(|content| blocks(content.get())).unwrap_or_default();
    let texts = blocks.iter().take(ERROR_BLOCKS_MAX).filter_map(|block| text_of(block));
    let texts: Vec<String> = texts.filter_map(|text| serde_json::from_str(text.get()).ok()).collect();
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
        let told = |result: &str| envelope(result).map(|json| String::from_utf8(json).expect("UTF-8"));
        let text = r#"{"type": "text", "text": "{\"a\": 1}"}"#;
        assert_eq!(told(&format!(r#"{{"content": [{text}]}}"#)), Ok(r#"{"text":"{\"a\": 1}"}"#.into()));
        let both = format!(r#"{{"content": [{text}], "structuredContent": {{"a": 1}}}}"#);
        assert_eq!(told(&both), Ok(r#"{"structured":{"a": 1}}"#.into()));
        let two = format!(r#"{{"content":[{text},{text}]}}"#);
        assert_eq!(told(&two), Ok(two.clone()));
        let failed = r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#;
        assert_eq!(told(failed), Err((FailureCode::ToolFailed, "no".into())));
    }

    #[test]
    fn a_result_of_any_depth_costs_no_stack() {
        let deep = format!(r#"{{"structuredContent": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(envelope(&deep).is_ok());
    }
}
