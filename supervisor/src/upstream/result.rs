//! A result as code gets it. Content stays text throughout: only its outline is parsed.

use lockhouse_policies::Item;
use lockhouse_protocol::FailureCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::Unsuccessful;

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
    structured_content: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// Of `resources/read`.
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    /// Of `prompts/get`.
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// The envelope for the engine, as JSON. Of a tool: `{"structured"}` when there is any, else `{"text"}` for one text block,
/// else `{"content"}`. A text is never guessed to be JSON. Of a resource: `{"contents"}`; of a prompt: `{"messages"}`.
pub(super) fn envelope(item: &Item, result: &str) -> Result<Vec<u8>, Unsuccessful> {
    let failed = |message: &str| (FailureCode::ToolFailed, message.to_owned());
    let outline: Outline<'_> =
        serde_json::from_str(result).map_err(|_| failed("the server's result is not one that MCP knows"))?;
    if outline.is_error == Some(true) {
        return Err(failure_of(error_text(outline.content)));
    }
    match item {
        Item::Resource(_) => return Ok(wrapped("contents", outline.contents.map_or("[]", RawValue::get))),
        Item::Prompt(_) => {
            let messages = outline.messages.map_or("[]", RawValue::get);
            let description = outline.description.map_or("null", RawValue::get);
            return Ok(format!(r#"{{"messages":{messages},"description":{description}}}"#).into_bytes());
        }
        Item::Tool(_) | Item::List(_) => {}
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
fn failure_of(text: String) -> Unsuccessful {
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
    use lockhouse_protocol::ToolName;

    use super::*;

    #[test]
    fn structured_content_wins_and_text_stays_text() {
        let tool = Item::Tool(ToolName::new("t").expect("a name"));
        let told = |result: &str| envelope(&tool, result).map(|json| String::from_utf8(json).expect("UTF-8"));
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
        let tool = Item::Tool(ToolName::new("t").expect("a name"));
        assert!(envelope(&tool, &deep).is_ok());
    }
}
