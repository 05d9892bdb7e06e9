//! Converts the results of calls to an upstream server into the form that submitted code receives. Only the outer
//! structure of a result is parsed; its content remains JSON text.

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
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
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
    /// The server requires input of the user before the call can be completed. Contains the JSON text of the server's
    /// `input_required` result.
    Asks(String),
    Result {
        raw: String,
        envelope: Result<Vec<u8>, CallError>,
    },
}

/// Parses `raw`, the JSON answer of a server to a call of `item`. The time is linear in the length of the answer.
/// Returns an error if the answer is an `input_required` result that is invalid or too large.
pub(super) fn read_answer(
    item: &CallTarget,
    raw: String,
    options: ResultOptions,
) -> Result<CallAnswer, CallError> {
    let outline = outline_of(&raw);
    let kind = outline.as_ref().and_then(|outline| outline.result_type);
    if kind.is_some_and(|kind| kind.get() == "\"input_required\"") && input_required::parse(&raw)?.is_some() {
        return Ok(CallAnswer::Asks(raw));
    }
    let envelope = envelope(item, outline, options);
    Ok(CallAnswer::Result { envelope, raw })
}

/// How the results of an upstream server's tool are converted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResultOptions {
    /// Whether the server's library wraps values as `{"result": …}`. If so, the program gets the inner value.
    wrapped: bool,
    /// Whether a result text that is JSON reaches the program as the parsed value.
    decodes: bool,
    /// Whether the program always gets a list, even if the server answers with a single text block.
    always_list: bool,
}

impl ResultOptions {
    /// Creates the options for a tool. `declares_values` is whether the tool's output schema describes more than text.
    /// If so, [`TextDecoding::Auto`] does not parse the tool's text results as JSON.
    pub(super) fn new(wrapped: bool, declares_values: bool, decoding: TextDecoding) -> Self {
        let decodes = match decoding {
            TextDecoding::Auto => !declares_values,
            TextDecoding::Json | TextDecoding::List => true,
            TextDecoding::Text => false,
        };
        Self { wrapped, decodes, always_list: decoding == TextDecoding::List }
    }

    /// Builds the envelope `{NAME: JSON}` for the worker. Adds those of the flags `decode` and `list` that these
    /// options require; they say how the worker converts result text.
    fn envelope(self, name: &str, json: &str) -> Vec<u8> {
        let decode = if self.decodes { r#","decode":true"# } else { "" };
        let list = if self.always_list { r#","list":true"# } else { "" };
        format!("{{\"{name}\":{json}{decode}{list}}}").into_bytes()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrappedResult<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Parses the outer structure of a result; `None` if the text is not a result as MCP defines it.
fn outline_of(result: &str) -> Option<Outline<'_>> {
    serde_json::from_str(result).ok()
}

/// Builds the JSON envelope in which the worker gets a result. For a resource, the envelope is `{"contents"}`; for a
/// prompt, `{"messages", "description"}`. For a tool, it is `{"structured"}` if there is structured content, else
/// `{"text"}` for a single text block, else `{"content"}`; structured content that is a text to decode also becomes
/// `{"text"}`. With `"decode": true`, the worker parses text that is JSON; with `"list": true`, the worker converts a
/// single text to a list.
fn envelope(
    item: &CallTarget,
    outline: Option<Outline<'_>>,
    options: ResultOptions,
) -> Result<Vec<u8>, CallError> {
    let unknown = || CallError::tool_failed("the server's result is not one that MCP knows");
    let outline = outline.ok_or_else(unknown)?;
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
            Ok(inner) if options.wrapped => inner.result,
            _ => structured,
        };
        return Ok(match value.get().starts_with('"') && options.decodes {
            true => options.envelope("text", value.get()),
            false => wrapped("structured", value.get()),
        });
    }
    let content = outline.content.map_or("[]", RawValue::get);
    Ok(match blocks(content)[..] {
        [block] if let Some(text) = text_of(block) => options.envelope("text", text.get()),
        _ => options.envelope("content", content),
    })
}

/// Creates the error of a call whose result has `isError`; `text` is the error text of the result. The TypeScript SDK
/// of MCP also reports arguments that do not match the schema as such a result. The error code at the start of `text`
/// distinguishes them.
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
            envelope(&tool, outline_of(result), ResultOptions::default())
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
    fn wrapped_results_are_unwrapped_and_text_is_marked_for_decoding() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted = |options: ResultOptions, result: &str| {
            let json = envelope(&tool, outline_of(result), options)
                .map(|json| String::from_utf8(json).expect("UTF-8"));
            json.expect("no failure")
        };
        let options = |declares_values, decoding| ResultOptions::new(true, declares_values, decoding);
        let auto = options(false, TextDecoding::Auto);
        let declared = options(true, TextDecoding::Auto);
        let json = options(true, TextDecoding::Json);
        let list = options(false, TextDecoding::List);
        let text = options(false, TextDecoding::Text);
        let own = ResultOptions::new(false, true, TextDecoding::Json);
        let one = r#"{"content": [{"type": "text", "text": "[1]"}]}"#;
        let blocks = r#"[{"type":"text","text":"1"},{"type":"text","text":"2"}]"#;
        let two = format!(r#"{{"content": {blocks}}}"#);
        for (options, result, expected) in [
            (declared, r#"{"structuredContent": {"result": [1]}}"#, r#"{"structured":[1]}"#),
            (declared, r#"{"structuredContent": {"result": "[1]"}}"#, r#"{"structured":"[1]"}"#),
            (auto, r#"{"structuredContent": {"result": "[1]"}}"#, r#"{"text":"[1]","decode":true}"#),
            (json, r#"{"structuredContent": {"result": "[1]"}}"#, r#"{"text":"[1]","decode":true}"#),
            (
                auto,
                r#"{"structuredContent": {"result": 1, "more": 2}}"#,
                r#"{"structured":{"result": 1, "more": 2}}"#,
            ),
            (own, r#"{"structuredContent": {"result": [1]}}"#, r#"{"structured":{"result": [1]}}"#),
            (auto, one, r#"{"text":"[1]","decode":true}"#),
            (list, one, r#"{"text":"[1]","decode":true,"list":true}"#),
            (declared, one, r#"{"text":"[1]"}"#),
            (text, one, r#"{"text":"[1]"}"#),
            (auto, &two, &format!(r#"{{"content":{blocks},"decode":true}}"#)),
            (text, &two, &format!(r#"{{"content":{blocks}}}"#)),
        ] {
            assert_eq!(converted(options, result), expected, "{options:?} {result}");
        }
    }

    #[test]
    fn a_result_of_any_depth_costs_no_stack() {
        let deep = format!(r#"{{"structuredContent": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        assert!(
            envelope(&tool, outline_of(&deep), ResultOptions::new(true, false, TextDecoding::Json)).is_ok()
        );
    }
}
