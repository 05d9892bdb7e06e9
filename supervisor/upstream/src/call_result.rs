//! Converts the results of calls to an upstream server into the form that submitted code receives. Only the outer
//! structure of a result is parsed; its content remains JSON text.

mod content;
mod failed_result;

use std::ops::Range;

use lockhouse_policies::CallTarget;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call_types::CallError;
use super::definition::TextDecoding;
use super::input_required;
use content::Content;

/// The end of the envelope of a result with content that its value does not have.
const ASIDE: &str = r#","aside":true}"#;
/// The start of the envelope of a text.
const TEXT: &str = r#"{"text":"#;

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
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
}

impl<'a> Outline<'a> {
    fn structured(&self) -> Option<&'a RawValue> {
        self.structured_content.filter(|value| value.get() != "null")
    }

    /// Returns the `_meta` of the result, unless it is empty.
    fn meta(&self) -> Option<&'a RawValue> {
        self.meta.filter(|meta| !matches!(meta.get(), "null" | "{}"))
    }
}

/// The parsed answer of an upstream server to a call.
pub(super) enum CallAnswer {
    /// The server requires input of the user before the call can be completed. Contains the JSON text of the server's
    /// `input_required` result.
    Asks(String),
    /// The result in the form that was asked for.
    Result(Vec<u8>),
    /// The JSON text of a result that says that the call failed, or that MCP does not know, with the error.
    Failed(String, CallError),
}

/// The form in which a result is passed on.
#[derive(Clone, Copy)]
pub(super) enum ResultForm {
    /// The JSON envelope in which a worker gets the result.
    Envelope(ResultOptions),
    /// The JSON text as the server sent it.
    Unchanged,
}

/// Parses `raw`, the JSON answer of a server to a call of `item`. The time is linear in the length of the answer.
/// Returns an error if the answer is an `input_required` result that is invalid or too large.
pub(super) fn read_answer(item: &CallTarget, raw: String, form: ResultForm) -> Result<CallAnswer, CallError> {
    let outline = outline_of(&raw);
    let kind = outline.as_ref().and_then(|outline| outline.result_type);
    if kind.is_some_and(|kind| kind.get() == "\"input_required\"") && input_required::parse(&raw)?.is_some() {
        return Ok(CallAnswer::Asks(raw));
    }
    let result = outline.ok_or_else(unknown).and_then(success).and_then(|outline| match form {
        ResultForm::Envelope(options) => envelope(item, &outline, options).map(|of| Some(of.place_in(&raw))),
        ResultForm::Unchanged => check(item, &outline).map(|()| None),
    });
    Ok(match result {
        Ok(Some(envelope)) => CallAnswer::Result(envelope.into_bytes(raw)),
        Ok(None) => CallAnswer::Result(raw.into_bytes()),
        Err(error) => CallAnswer::Failed(raw, error),
    })
}

fn unknown() -> CallError {
    CallError::tool_failed("the server's result is not one that MCP knows")
}

fn success(outline: Outline<'_>) -> Result<Outline<'_>, CallError> {
    if outline.is_error == Some(true) { Err(failed_result::to_error(&outline)) } else { Ok(outline) }
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

    /// The members of an envelope that say how the worker converts result text.
    fn flags(self) -> String {
        let decode = if self.decodes { r#","decode":true"# } else { "" };
        let list = if self.always_list { r#","list":true"# } else { "" };
        format!("{decode}{list}")
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

/// Whether the result of a tool, in the form that the worker gets, has content that is not in its value.
pub fn leaves_content_aside(envelope: &[u8]) -> bool {
    envelope.ends_with(ASIDE.as_bytes())
}

/// A part of a result, with what stands before and after it in its envelope.
struct Envelope<P> {
    head: String,
    part: P,
    tail: String,
}

impl Envelope<&str> {
    /// Returns the envelope with the place of its part in `raw`, the whole result.
    fn place_in(self, raw: &str) -> Envelope<Range<usize>> {
        let Self { mut head, part, tail } = self;
        let start = (part.as_ptr() as usize).checked_sub(raw.as_ptr() as usize);
        let part = match start.filter(|start| start + part.len() <= raw.len()) {
            Some(start) => start..start + part.len(),
            // A constant, in place of a member that the result lacks.
            None => {
                head += part;
                0..0
            }
        };
        Envelope { head, part, tail }
    }
}

impl Envelope<Range<usize>> {
    /// Returns the JSON text of the envelope, for a part of `raw`. A large part stays in its memory.
    fn into_bytes(self, raw: String) -> Vec<u8> {
        let Self { head, part, tail } = self;
        let mut bytes = raw.into_bytes();
        bytes.truncate(part.end);
        bytes.splice(..part.start, head.into_bytes());
        bytes.extend_from_slice(tail.as_bytes());
        bytes
    }
}

/// Builds the JSON envelope in which the worker gets a result. For a resource, the envelope is `{"contents"}`; for a
/// prompt, `{"messages", "description"}`. For a tool, it is that of [`tool_envelope`].
fn envelope<'a>(
    item: &CallTarget,
    outline: &Outline<'a>,
    options: ResultOptions,
) -> Result<Envelope<&'a str>, CallError> {
    match item {
        CallTarget::Resource(_) => {
            let part = objects(outline.contents, "contents")?;
            Ok(Envelope { head: r#"{"contents":"#.to_owned(), part, tail: "}".to_owned() })
        }
        CallTarget::Prompt(_) => {
            let part = objects(outline.messages, "messages")?;
            let description = outline.description.map_or("null", RawValue::get);
            let tail = format!(r#","description":{description}}}"#);
            Ok(Envelope { head: r#"{"messages":"#.to_owned(), part, tail })
        }
        CallTarget::Tool(_) | CallTarget::List(_) => tool_envelope(outline, options),
    }
}

/// Checks that the lists of a result have the form that MCP requires.
fn check(item: &CallTarget, outline: &Outline<'_>) -> Result<(), CallError> {
    match item {
        CallTarget::Resource(_) => objects(outline.contents, "contents").map(drop),
        CallTarget::Prompt(_) => objects(outline.messages, "messages").map(drop),
        CallTarget::Tool(_) | CallTarget::List(_) => {
            Content::parse(outline.content).map(drop).map_err(malformed)
        }
    }
}

/// Builds the envelope of a tool's result. It has `structured` if there is structured content, else `text` for a single
/// text block, else `content`; structured content that is a text to decode also becomes `text`. With `"decode": true`,
/// the worker parses text that is JSON; with `"list": true`, it converts a single text to a list. `content` stands beside
/// `structured` or `text` if it has more than they have (with `"aside": true` beside structured content), and `meta` is
/// the `_meta` of the result: programs can read both, but they are not in the value.
fn tool_envelope<'a>(outline: &Outline<'a>, options: ResultOptions) -> Result<Envelope<&'a str>, CallError> {
    let content = Content::parse(outline.content).map_err(malformed)?;
    // Some servers send an empty object beside their text.
    let structured = outline.structured().filter(|value| value.get() != "{}" || content.is_empty());
    let mut is_aside = false;
    let (head, part, mut tail) = match (structured, content.only_text()) {
        (Some(structured), _) => {
            let value = match serde_json::from_str::<WrappedResult<'_>>(structured.get()) {
                Ok(inner) if options.wrapped => inner.result,
                _ => structured,
            };
            is_aside = !content.repeats(structured, value);
            match value.get() {
                json if json.starts_with('"') && options.decodes => (TEXT, json, options.flags()),
                json => (r#"{"structured":"#, json, String::new()),
            }
        }
        (None, Some(text)) => (TEXT, text, options.flags()),
        (None, None) => (r#"{"content":"#, content.json(), options.flags()),
    };
    let has_more = structured.is_none() && content.only_text().is_some() && !content.is_plain();
    if is_aside || has_more {
        tail += r#","content":"#;
        tail += content.json();
    }
    if let Some(meta) = outline.meta() {
        tail += r#","meta":"#;
        tail += meta.get();
    }
    tail += if is_aside { ASIDE } else { "}" };
    Ok(Envelope { head: head.to_owned(), part, tail })
}

fn malformed(what: impl std::fmt::Display) -> CallError {
    CallError::tool_failed(format!("the server's result is malformed: {what}"))
}

/// Returns the JSON of a member of a result, which must be a list of objects. A missing member is an empty list.
fn objects<'a>(list: Option<&'a RawValue>, member: &str) -> Result<&'a str, CallError> {
    let json = list.map_or("[]", RawValue::get);
    let rows: Option<Vec<&RawValue>> = serde_json::from_str(json).ok();
    let rows = rows.ok_or_else(|| malformed(format!("its {member} are no list")))?;
    match rows.iter().position(|row| !row.get().starts_with('{')) {
        Some(index) => Err(malformed(format!("item {} of its {member} is no object", index + 1))),
        None => Ok(json),
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;

    use super::*;

    /// Returns the envelope of a result.
    fn envelope_of(item: &CallTarget, result: &str, options: ResultOptions) -> Result<String, CallError> {
        match read_answer(item, result.to_owned(), ResultForm::Envelope(options))? {
            CallAnswer::Result(json) => Ok(String::from_utf8(json).expect("UTF-8")),
            CallAnswer::Failed(raw, error) => {
                assert_eq!(raw, result);
                Err(error)
            }
            CallAnswer::Asks(_) => panic!("{result}"),
        }
    }

    #[test]
    fn structured_content_wins_and_text_stays_text() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted = |result: &str| envelope_of(&tool, result, ResultOptions::default());
        let text = r#"{"type": "text", "text": "{\"a\": 1}"}"#;
        assert_eq!(converted(&format!(r#"{{"content": [{text}]}}"#)), Ok(r#"{"text":"{\"a\": 1}"}"#.into()));
        let both = format!(r#"{{"content": [{text}], "structuredContent": {{"a": 1}}}}"#);
        assert_eq!(converted(&both), Ok(r#"{"structured":{"a": 1}}"#.into()));
        let two = format!(r#"{{"content":[{text},{text}]}}"#);
        assert_eq!(converted(&two), Ok(two.clone()));
        let failed = r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#;
        assert_eq!(converted(failed), Err(CallError::tool_failed("no")));
        let empty = format!(r#"{{"content": [{text}], "structuredContent": {{}}}}"#);
        assert_eq!(converted(&empty), Ok(r#"{"text":"{\"a\": 1}"}"#.into()));
        assert_eq!(
            converted(r#"{"content": [], "structuredContent": {}}"#),
            Ok(r#"{"structured":{}}"#.into())
        );
    }

    #[test]
    fn content_and_meta_stand_beside_the_value() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted = |result: &str| {
            let json = envelope_of(&tool, result, ResultOptions::default()).expect("no failure");
            (leaves_content_aside(json.as_bytes()), json)
        };
        let text = r#"[{"type":"text","text":"3 rows"}]"#;
        let noted = r#"[{"type":"text","text":"a","annotations":{"priority":1}}]"#;
        for (result, expected) in [
            (
                format!(r#"{{"content":{text},"structuredContent":{{"n":3}},"_meta":{{"a":1}}}}"#),
                (
                    true,
                    format!(r#"{{"structured":{{"n":3}},"content":{text},"meta":{{"a":1}},"aside":true}}"#),
                ),
            ),
            (
                r#"{"content":[],"structuredContent":{"n":3,"aside":true},"_meta":{}}"#.to_owned(),
                (false, r#"{"structured":{"n":3,"aside":true}}"#.to_owned()),
            ),
            (
                format!(r#"{{"content":{noted},"_meta":{{"a":1}}}}"#),
                (false, format!(r#"{{"text":"a","content":{noted},"meta":{{"a":1}}}}"#)),
            ),
            (
                r#"{"content":[],"_meta":{"aside":true}}"#.to_owned(),
                (false, r#"{"content":[],"meta":{"aside":true}}"#.to_owned()),
            ),
        ] {
            assert_eq!(converted(&result), expected, "{result}");
        }
    }

    #[test]
    fn malformed_results_of_all_kinds_are_failures() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let resource = CallTarget::Resource(lockhouse_protocol::ResourceUri::new("a:b").expect("a URI"));
        let prompt = CallTarget::Prompt(lockhouse_protocol::PromptName::new("p").expect("a name"));
        for (item, result, expected) in [
            (&tool, r#"{"content": "plain"}"#, "its content is no list"),
            (&resource, r#"{"contents": {}}"#, "its contents are no list"),
            (&resource, r#"{"contents": [null]}"#, "item 1 of its contents is no object"),
            (&prompt, r#"{"messages": [{}, 1]}"#, "item 2 of its messages is no object"),
        ] {
            let expected = CallError::tool_failed(format!("the server's result is malformed: {expected}"));
            let converted = envelope_of(item, result, ResultOptions::default());
            assert_eq!(converted, Err(expected.clone()), "{result}");
            let unchanged = read_answer(item, result.to_owned(), ResultForm::Unchanged);
            assert!(matches!(unchanged, Ok(CallAnswer::Failed(_, error)) if error == expected), "{result}");
        }
    }

    #[test]
    fn wrapped_results_are_unwrapped_and_text_is_marked_for_decoding() {
        let tool = CallTarget::Tool(ToolName::new("t").expect("a name"));
        let converted =
            |options: ResultOptions, result: &str| envelope_of(&tool, result, options).expect("no failure");
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
        assert!(envelope_of(&tool, &deep, ResultOptions::new(true, false, TextDecoding::Json)).is_ok());
    }
}
