//! Converts an upstream server's result of a call for submitted code. Only the outer structure of the result is parsed;
//! its content remains JSON text.

use lockhouse_policies::CallTarget;
use lockhouse_protocol::FailureCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call_types::CallError;
use super::definition::TextDecoding;
use super::input_required;

/// Maximum number of characters of a tool's error text that submitted code receives.
const ERROR_CHARS_MAX: usize = 4_000;
/// Maximum number of content blocks of a failed call's result that are searched for an error text.
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
    /// The parts of the resource, in a `resources/read` result; `None` in other results.
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    /// The messages of the prompt, in a `prompts/get` result; `None` in other results.
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

/// The parsed answer of an upstream server to a call.
pub(super) enum CallAnswer {
    /// The server requires input of the user before it completes the call. Contains the JSON text of its
    /// `input_required` result.
    Asks(String),
    Result {
        raw: String,
        envelope: Result<Vec<u8>, CallError>,
    },
}

/// Parses the raw JSON answer of a server to a call, in time linear in its length.
pub(super) fn read_answer(
    item: &CallTarget,
    raw: String,
    reading: ResultOptions,
) -> Result<CallAnswer, CallError> {
    Ok(match input_required::parse(&raw)?.is_some() {
        true => CallAnswer::Asks(raw),
        false => CallAnswer::Result { envelope: envelope(item, &raw, reading), raw },
    })
}

/// How the results of an upstream server's tool are converted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResultOptions {
    /// Whether the server's MCP library wraps values as `{"result": …}`. If so, the inner value is returned to
    /// submitted code.
    pub(super) wrapped: bool,
    pub(super) decode: TextDecoding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrappedResult<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Builds the JSON envelope in which the engine receives the result of a call. For a tool, its member is `structured`
/// if there is structured content, otherwise `text` for a single text block, otherwise `content`. Text that contains
/// JSON counts as structured content only if the configuration says so. For a resource, the member is `contents`; for a
/// prompt, the members are `messages` and `description`.
fn envelope(item: &CallTarget, result: &str, reading: ResultOptions) -> Result<Vec<u8>, CallError> {
    let outline: Outline<'_> = serde_json::from_str(result)
        .map_err(|_| CallError::tool_failed("the server's result is not one that MCP knows"))?;
    if outline.is_error == Some(true) {
        return Err(failure_of(error_text(outline.content)));
    }
    match item {
        CallTarget::Resource(_) => {
            return Ok(wrapped("contents", outline.contents.map_or("[]", RawValue::get)));
        }
        CallTarget::Prompt(_) => {
            let messages = outline.messages.map_or("[]", RawValue::get);
            let description = outline.description.map_or("null", RawValue::get);
            return Ok(format!(r#"{{"messages":{messages},"description":{description}}}"#).into_bytes());
        }
        CallTarget::Tool(_) | CallTarget::List(_) => {}
    }
    if let Some(structured) = outline.structured_content.filter(|value| value.get() != "null") {
        let value = match serde_json::from_str::<WrappedResult<'_>>(structured.get()) {
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
        // Older libraries return each item of a list as a text block.
        Some(texts @ [_, ..]) => {
            let values: Option<Vec<Box<RawValue>>> = texts.iter().map(|text| reading.decoded(text)).collect();
            let list = values.and_then(|values| serde_json::to_string(&values).ok());
            Ok(list.map_or_else(|| wrapped("content", content), |list| wrapped("structured", &list)))
        }
        _ => Ok(wrapped("content", content)),
    }
}

impl ResultOptions {
    /// Returns the JSON object or array that is encoded in a JSON string. `None` if the string contains neither, or if
    /// the configuration does not ask for decoding.
    fn decoded(self, string: &RawValue) -> Option<Box<RawValue>> {
        if self.decode != TextDecoding::Json || !string.get().starts_with('"') {
            return None;
        }
        let text: String = serde_json::from_str(string.get()).ok()?;
        let text = text.trim();
        let may_be = text.starts_with(['{', '[']);
        may_be.then(|| RawValue::from_string(text.to_owned()).ok()).flatten()
    }
}

/// Creates the error of a call whose result has `isError`. The TypeScript SDK of MCP also reports arguments that do not
/// match the schema as such a result; these are recognized by the error code at the start of `text`.
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

/// Returns the text of a content block of type `text`, as a JSON string; `None` for blocks of other types.
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
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted = |result: &str| {
            envelope(&tool, result, ResultOptions::default())
                .map(|json| String::from_utf8(json).expect("UTF-8"))
        };
        let text = r#"{"type": "text", "text": "{\"a\": 1}"}"#;
        assert_eq!(converted(&format!(r#"{{"content": [{text}]}}"#)), Ok(r#"{"text":"{\"a\": 1}"}"#.into()));
        let both = format!(r#"{{"content": [{text}], "structuredContent": {{"a": 1}}}}"#);
        assert_eq!(converted(&both), Ok(r#"{"structured":{"a": 1}}"#.into()));
        let two = format!(r#"{{"content":[{text},{text}]}}"#);
        assert_eq!(converted(&two), Ok(two.clone()));
        let failed = r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#;
        assert_eq!(converted(failed), Err(CallError::tool_failed("no")));
    }

    #[test]
    fn what_a_library_wrapped_is_unwrapped_and_json_is_decoded_where_that_is_configured() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted = |reading: ResultOptions, result: &str| {
            envelope(&tool, result, reading)
                .map(|json| String::from_utf8(json).expect("UTF-8"))
                .expect("no failure")
        };
        let json = ResultOptions { wrapped: true, decode: TextDecoding::Json };
        let text = ResultOptions { wrapped: true, decode: TextDecoding::Text };
        let own = ResultOptions { wrapped: false, decode: TextDecoding::Json };
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
            assert_eq!(converted(reading, result), expected, "{reading:?} {result}");
        }
    }

    #[test]
    fn a_result_of_any_depth_costs_no_stack() {
        let deep = format!(r#"{{"structuredContent": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        assert!(envelope(&tool, &deep, ResultOptions { wrapped: true, decode: TextDecoding::Json }).is_ok());
    }
}
