//! The error of a call whose result has `isError`: its message, and the result itself if it has more than the message.

use lockhouse_protocol::FailureCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Outline;
use super::content::Content;
use crate::call_types::CallError;

/// Maximum number of characters of a tool's error text that submitted code receives.
const ERROR_CHARS_MAX: usize = 4_000;
/// Maximum number of content blocks of a failed call's result that are searched for an error text.
const ERROR_BLOCKS_MAX: usize = 20;

/// Creates the error of a call whose result has `isError`.
pub(super) fn to_error(outline: &Outline<'_>) -> CallError {
    let structured = outline.structured();
    let content = match Content::parse(outline.content) {
        Ok(content) => content,
        Err(what) => {
            return CallError::tool_failed(format!("the tool failed, and its result is malformed: {what}"));
        }
    };
    let texts: Vec<String> = content.texts().filter(|text| !text.trim().is_empty()).collect();
    let text = texts.iter().take(ERROR_BLOCKS_MAX).map(String::as_str).collect::<Vec<_>>().join("\n");
    let message: String = match (text.is_empty(), structured) {
        (false, _) => text.chars().take(ERROR_CHARS_MAX).collect(),
        (true, Some(structured)) => structured_text(structured),
        (true, None) if content.is_empty() || content.is_plain() => {
            "the tool failed and did not say why".into()
        }
        (true, None) => {
            "the tool failed, and its result has no text: full_result(error) has its content".into()
        }
    };
    let is_whole = content.is_plain() && texts.len() <= 1 && message.len() >= text.len();
    let has_more = structured.is_some() || outline.meta().is_some() || !is_whole;
    CallError {
        result: has_more.then(|| failed_envelope(outline, &content)),
        ..CallError::new(code_of(&message), message)
    }
}

/// Returns the code of a failure. The TypeScript SDK of MCP also reports arguments that do not match the schema as a failed
/// result. The error code at the start of its text distinguishes them.
fn code_of(message: &str) -> FailureCode {
    match message.starts_with("MCP error -32602") {
        true => FailureCode::InvalidArguments,
        false => FailureCode::ToolFailed,
    }
}

/// The members in which structured errors usually have their message.
#[derive(Deserialize)]
struct ErrorMembers {
    #[serde(alias = "error", alias = "detail")]
    message: Option<String>,
}

/// Returns the message in structured content, or else its JSON.
fn structured_text(structured: &RawValue) -> String {
    let members = serde_json::from_str::<ErrorMembers>(structured.get()).ok();
    let message = members.and_then(|members| members.message).filter(|message| !message.trim().is_empty());
    message.as_deref().unwrap_or(structured.get()).chars().take(ERROR_CHARS_MAX).collect()
}

/// Builds the JSON of a failed result, with the member names of the envelope of a result.
fn failed_envelope(outline: &Outline<'_>, content: &Content<'_>) -> Vec<u8> {
    let mut json = format!(r#"{{"content":{}"#, content.json());
    for (name, value) in [("structured", outline.structured()), ("meta", outline.meta())] {
        if let Some(value) = value {
            json += &format!(r#","{name}":{}"#, value.get());
        }
    }
    (json + "}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::outline_of;
    use super::*;

    #[test]
    fn a_failure_has_its_message_and_what_else_there_is() {
        let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let image = r#"{"type":"image","data":"","mimeType":"image/png"}"#;
        let silent = "the tool failed and did not say why";
        let long = "x".repeat(5_000);
        for (members, message, result) in [
            (format!(r#""content":[{}]"#, text("no")), "no", None),
            (r#""content":[]"#.to_owned(), silent, None),
            (format!(r#""content":[{}]"#, text(" ")), silent, None),
            (
                r#""content":[],"structuredContent":{"error":"quota","left":0}"#.to_owned(),
                "quota",
                Some(r#"{"content":[],"structured":{"error":"quota","left":0}}"#.to_owned()),
            ),
            (
                r#""content":[],"structuredContent":{"code":7}"#.to_owned(),
                r#"{"code":7}"#,
                Some(r#"{"content":[],"structured":{"code":7}}"#.to_owned()),
            ),
            (
                format!(r#""content":[{},{}]"#, text("a"), text("b")),
                "a\nb",
                Some(format!(r#"{{"content":[{},{}]}}"#, text("a"), text("b"))),
            ),
            (
                format!(r#""content":[{image}],"_meta":{{"a":1}}"#),
                "the tool failed, and its result has no text: full_result(error) has its content",
                Some(format!(r#"{{"content":[{image}],"meta":{{"a":1}}}}"#)),
            ),
            (
                format!(r#""content":[{}]"#, text(&long)),
                &long[..ERROR_CHARS_MAX],
                Some(format!(r#"{{"content":[{}]}}"#, text(&long))),
            ),
            (
                r#""content":"plain""#.to_owned(),
                "the tool failed, and its result is malformed: its content is no list",
                None,
            ),
        ] {
            let json = format!(r#"{{"isError":true,{members}}}"#);
            let error = to_error(&outline_of(&json).expect("a result"));
            let got = error.result.map(|result| String::from_utf8(result).expect("UTF-8"));
            assert_eq!((error.message.as_str(), got), (message, result), "{members}");
        }
    }
}
