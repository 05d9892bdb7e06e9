//! A result as code gets it. Content stays text throughout: only its outline is parsed.

use lockhouse_policies::Item;
use lockhouse_protocol::FailureCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::CallError;
use super::definition::Decode;
use super::input;

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

/// What an answer to a call is.
pub(super) enum Answer {
    /// It asks for input first.
    Asks(String),
    Result {
        raw: String,
        envelope: Result<Vec<u8>, CallError>,
    },
}

/// Reads the answer to a call, in time in proportion to its length.
pub(super) fn read_answer(item: &Item, raw: String, reading: Reading) -> Result<Answer, CallError> {
    Ok(match input::required(&raw)?.is_some() {
        true => Answer::Asks(raw),
        false => Answer::Result { envelope: envelope(item, &raw, reading), raw },
    })
}

/// How the results of a tool are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Whether its server's library wraps them: the value inside counts.
    pub(super) wrapped: bool,
    pub(super) decode: Decode,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The envelope for the engine, as JSON. Of a tool: `{"structured"}` when there is any, else `{"text"}` for one text block,
/// else `{"content"}`. A text is never guessed to be JSON: where it is, the configuration says so. Of a resource: `{"contents"}`; of a prompt: `{"messages"}`.
fn envelope(item: &Item, result: &str, reading: Reading) -> Result<Vec<u8>, CallError> {
    let outline: Outline<'_> = serde_json::from_str(result)
        .map_err(|_| CallError::failed("the server's result is not one that MCP knows"))?;
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
        let value = match serde_json::from_str::<Wrapped<'_>>(structured.get()) {
            Ok(inner) if reading.wrapped => inner.result,
            _ => structured,
        };
        let decoded = reading.decoded(value);
        return Ok(wrapped("structured", decoded.as_deref().unwrap_or(value).get()));
    }
    let content = outline.content.map_or("[]", RawValue::get);
    let blocks = blocks(content);
    let texts: Option<Vec<&RawValue>> = blocks.iter().map(|block| text_of(block)).collect();
    match texts.as_deref() {
        Some([text]) => Ok(match reading.decoded(text) {
            Some(value) => wrapped("structured", value.get()),
            None => wrapped("text", text.get()),
        }),
        // Older libraries make a text of each value of a list.
        Some(texts @ [_, ..]) => {
            let values: Option<Vec<Box<RawValue>>> = texts.iter().map(|text| reading.decoded(text)).collect();
            let list = values.and_then(|values| serde_json::to_string(&values).ok());
            Ok(list.map_or_else(|| wrapped("content", content), |list| wrapped("structured", &list)))
        }
        _ => Ok(wrapped("content", content)),
    }
}

impl Reading {
    /// The object or array that a JSON string is the JSON of, where that is to be looked for.
    fn decoded(self, string: &RawValue) -> Option<Box<RawValue>> {
        if self.decode != Decode::Json || !string.get().starts_with('"') {
            return None;
        }
        let text: String = serde_json::from_str(string.get()).ok()?;
        let text = text.trim();
        let may_be = text.starts_with(['{', '[']);
        may_be.then(|| RawValue::from_string(text.to_owned()).ok()).flatten()
    }
}

/// The TypeScript SDK reports arguments that do not fit its schema as a failed tool, with the code in the text.
fn failure_of(text: String) -> CallError {
    let code = if text.starts_with("MCP error -32602") {
        FailureCode::InvalidArguments
    } else {
        FailureCode::ToolFailed
    };
    CallError::new(code, text)
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
        let told = |result: &str| {
            envelope(&tool, result, Reading::default()).map(|json| String::from_utf8(json).expect("UTF-8"))
        };
        let text = r#"{"type": "text", "text": "{\"a\": 1}"}"#;
        assert_eq!(told(&format!(r#"{{"content": [{text}]}}"#)), Ok(r#"{"text":"{\"a\": 1}"}"#.into()));
        let both = format!(r#"{{"content": [{text}], "structuredContent": {{"a": 1}}}}"#);
        assert_eq!(told(&both), Ok(r#"{"structured":{"a": 1}}"#.into()));
        let two = format!(r#"{{"content":[{text},{text}]}}"#);
        assert_eq!(told(&two), Ok(two.clone()));
        let failed = r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#;
        assert_eq!(told(failed), Err(CallError::failed("no")));
    }

    #[test]
    fn what_a_library_wrapped_is_unwrapped_and_json_is_decoded_where_that_is_configured() {
        let tool = Item::Tool(ToolName::new("t").expect("a name"));
        let told = |reading: Reading, result: &str| {
            envelope(&tool, result, reading)
                .map(|json| String::from_utf8(json).expect("UTF-8"))
                .expect("no failure")
        };
        let json = Reading { wrapped: true, decode: Decode::Json };
        let text = Reading { wrapped: true, decode: Decode::Text };
        let own = Reading { wrapped: false, decode: Decode::Json };
        let block = |text: &str| format!(r#"{{"type": "text", "text": {}}}"#, serde_json::json!(text));
        let one = |text: &str| format!(r#"{{"content": [{}]}}"#, block(text));
        let two = format!(r#"{{"content":[{},{}]}}"#, block(r#"{"a":1}"#), block("[2]"));
        let mixed = format!(r#"{{"content":[{},{}]}}"#, block(r#"{"a":1}"#), block("two"));
        for (reading, result, expected) in [
            (text, r#"{"structuredContent": {"result": [1]}}"#, r#"{"structured":[1]}"#),
            (text, r#"{"structuredContent": {"result": "[1]"}}"#, r#"{"structured":"[1]"}"#),
            (json, r#"{"structuredContent": {"result": "[1]"}}"#, r#"{"structured":[1]}"#),
            (
                text,
                r#"{"structuredContent": {"result": 1, "more": 2}}"#,
                r#"{"structured":{"result": 1, "more": 2}}"#,
            ),
            (own, r#"{"structuredContent": {"result": [1]}}"#, r#"{"structured":{"result": [1]}}"#),
            (own, &one(r#" {"a": [1]} "#), r#"{"structured":{"a": [1]}}"#),
            (own, &one(r#"{"a": [1]"#), r#"{"text":"{\"a\": [1]"}"#),
            (own, &one("2024"), r#"{"text":"2024"}"#),
            (own, &two, r#"{"structured":[{"a":1},[2]]}"#),
            (own, &mixed, &mixed),
            (text, &two, &two),
        ] {
            assert_eq!(told(reading, result), expected, "{reading:?} {result}");
        }
    }

    #[test]
    fn a_result_of_any_depth_costs_no_stack() {
        let deep = format!(r#"{{"structuredContent": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let tool = Item::Tool(ToolName::new("t").expect("a name"));
        assert!(envelope(&tool, &deep, Reading { wrapped: true, decode: Decode::Json }).is_ok());
    }
}
