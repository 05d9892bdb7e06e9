//! What of an answer is shown: all of it up to a limit, then head and tail of each part, with a handle to the whole.

pub(super) mod calls;
mod cut;
mod text;

use std::borrow::Cow;

use lockhouse_protocol::ResultHandle;
use serde_json::{Value, json};

pub(super) use text::cut as cut_text;

use super::answer::{Answer, parsed};

/// An answer's parts as they are shown.
pub(super) struct Parts<'a> {
    pub(super) value: Option<Value>,
    pub(super) stdout: Cow<'a, str>,
    pub(super) stderr: Cow<'a, str>,
    pub(super) calls: Value,
    /// Bytes of value, stdout and stderr.
    pub(super) bytes: usize,
}

/// Part of a JSON value in at most `limit` bytes, and the places in it that were cut.
pub(crate) fn part(json: &str, limit: usize) -> (Value, Vec<Value>) {
    let cut = cut::cut(json, limit);
    let value = serde_json::from_str(&cut.json).unwrap_or_else(|_| cut.json.into());
    (value, cut.places)
}

/// The answer with value, stdout and stderr of at most `limit` bytes each. What is longer is given to `keep` whole, as JSON,
/// and `more` says how it is read.
pub(crate) fn shorten(
    answer: &Answer,
    limit: usize,
    more: &str,
    keep: impl Fn(&str) -> Option<ResultHandle>,
) -> Value {
    let mut truncated = json!({});
    let mut note = |part: &str, whole: &str, bytes: usize, shown: usize, places: Vec<Value>| {
        truncated[part] = json!({"bytes": bytes, "shown": shown});
        if !places.is_empty() {
            truncated[part]["cut"] = places.into();
        }
        if let Some(handle) = keep(whole) {
            truncated[part]["handle"] = handle.as_str().into();
            truncated["hint"] = format!("the next part: {more}; in code, whole: load_result(handle)").into();
        } else {
            truncated["hint"] = "return or print less: filter, aggregate or slice in the code".into();
        }
    };
    let mut bytes = 0;
    let value = answer.value.as_deref().map(|raw| {
        let (whole, text) = (raw.get(), text_of(raw.get()));
        let length = text.as_ref().map_or(whole.len(), String::len);
        if length <= limit {
            bytes += length;
            return text.map_or_else(|| parsed(raw), Value::from);
        }
        let (value, shown, places) = match text {
            Some(text) => {
                let shown = cut_text(&text, limit).unwrap_or(text);
                let length = shown.len();
                (Value::from(shown), length, Vec::new())
            }
            None => {
                let cut = cut::cut(whole, limit);
                let length = cut.json.len();
                (serde_json::from_str(&cut.json).unwrap_or_else(|_| cut.json.into()), length, cut.places)
            }
        };
        bytes += shown;
        note("value", whole, length, shown, places);
        value
    });
    let mut printed = |part: &str, whole: &'_ str| -> Option<String> {
        let shown = cut_text(whole, limit);
        bytes += shown.as_ref().map_or(whole.len(), String::len);
        if let Some(shown) = &shown {
            note(part, &Value::from(whole).to_string(), whole.len(), shown.len(), Vec::new());
        }
        shown
    };
    let stdout = printed("stdout", &answer.stdout);
    let stderr = printed("stderr", &answer.stderr);
    let calls = calls::shown(&answer.calls);
    if answer.calls.len() > calls::SHOWN_MAX {
        truncated["calls"] = json!({"count": answer.calls.len(), "shown": "grouped by tool and outcome"});
    }
    let or_whole = |shown: Option<String>, whole| shown.map_or(Cow::Borrowed(whole), Cow::Owned);
    let stdout = or_whole(stdout, answer.stdout.as_str());
    let stderr = or_whole(stderr, answer.stderr.as_str());
    let mut json = answer.to_json_of(Parts { value, stdout, stderr, calls, bytes });
    if truncated.as_object().is_some_and(|parts| !parts.is_empty()) {
        json["truncated"] = truncated;
    }
    json
}

/// The text, if the JSON is that of text.
pub(crate) fn text_of(json: &str) -> Option<String> {
    if json.trim_start().starts_with('"') { serde_json::from_str(json).ok() } else { None }
}
