//! What of an answer is shown: all of it up to a limit, then head and tail of each part, with a handle to the whole.

mod files;

use std::borrow::Cow;

use lockhouse_base::json::{self, cut_text, text_of};
use lockhouse_messages::File;
use lockhouse_protocol::ResultHandle;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::calls;
use super::display::{CALLS_MAX, DisplayLimits, FILE_BYTES_MAX, FILES_MAX};
use super::to_json::Parts;

/// How an answer is to be shown.
pub struct Showing<'a> {
    pub limits: DisplayLimits,
    /// How the next part of what is cut is read.
    pub more: &'a str,
    /// Whether files in the value are taken out of it.
    pub takes_files: bool,
    /// Keeps what is cut, as JSON.
    pub keep: &'a dyn Fn(&str) -> Option<ResultHandle>,
}

/// What is shown of an answer.
#[derive(Debug)]
pub struct Shown {
    pub json: Value,
    /// What was taken out of the value, in the order of the numbers that stand for it, from 1 on.
    pub files: Vec<File>,
}

/// What is shown of an answer.
pub fn shown(answer: &Answer, showing: &Showing<'_>) -> Shown {
    let mut shown = Parts::nothing();
    let mut truncated = Truncated { showing, parts: Map::new(), hint: None };
    let mut files = Files::default();
    if let Some(raw) = &answer.value {
        shown.value = Some(value(raw.get(), &mut shown.bytes, &mut truncated, &mut files));
    }
    shown.bytes += files.taken.iter().map(|file| file.base64.len()).sum::<usize>();
    shown.stdout = printed("stdout", &answer.stdout, &mut shown.bytes, &mut truncated);
    shown.stderr = printed("stderr", &answer.stderr, &mut shown.bytes, &mut truncated);
    shown.calls = calls::shown(&answer.calls);
    if answer.calls.len() > CALLS_MAX {
        let count = answer.calls.len();
        truncated
            .parts
            .insert("calls".into(), json!({"count": count, "shown": "grouped by tool and outcome"}));
    }
    let mut json = answer.to_json_of(shown);
    if let Some(truncated) = truncated.into_json() {
        json["truncated"] = truncated;
    }
    Shown { json, files: files.taken }
}

/// The JSON of a value for people: a few words in the place of each file.
pub fn without_files(json: &str) -> Cow<'_, str> {
    files::replaced(json, |file| {
        Value::from(format!("<{}, {} bytes>", file.mime_type, json::grouped(file.bytes()))).to_string()
    })
}

fn value(whole: &str, bytes: &mut usize, truncated: &mut Truncated<'_>, files: &mut Files) -> Value {
    let limit = truncated.showing.limits.part_bytes;
    let json = match truncated.showing.takes_files {
        true => files::replaced(whole, |file| files.take(file)),
        false => whole.into(),
    };
    let text = text_of(&json);
    let length = text.as_ref().map_or(json.len(), String::len);
    let (value, shown, places) = match text {
        _ if length <= limit => (tree(&json), length, Vec::new()),
        Some(text) => {
            let shown = cut_text(&text, limit).unwrap_or(text);
            let length = shown.len();
            (Value::from(shown), length, Vec::new())
        }
        None => {
            let cut = json::cut(&json, limit);
            let length = cut.json.len();
            (cut.value(), length, cut.places)
        }
    };
    *bytes += shown;
    if length > limit || files.left_out > 0 {
        truncated.note("value", whole, length, shown, places);
    }
    value
}

/// The value, or the text that it is where no tree is made of it.
fn tree(json: &str) -> Value {
    json::tree(json.as_bytes(), usize::MAX).unwrap_or_else(|_| json.into())
}

fn printed<'a>(part: &str, whole: &'a str, bytes: &mut usize, truncated: &mut Truncated<'_>) -> Cow<'a, str> {
    let shown =
        cut_text(whole, truncated.showing.limits.printed_bytes).map_or(Cow::Borrowed(whole), Cow::Owned);
    *bytes += shown.len();
    if shown.len() < whole.len() {
        truncated.note(part, &Value::from(whole).to_string(), whole.len(), shown.len(), Vec::new());
    }
    shown
}

/// What the answer says of parts that are not shown whole.
struct Truncated<'a> {
    showing: &'a Showing<'a>,
    parts: Map<String, Value>,
    hint: Option<String>,
}

impl Truncated<'_> {
    fn note(&mut self, part: &str, whole: &str, bytes: usize, shown: usize, places: Vec<Value>) {
        let mut row = json!({"bytes": bytes, "shown": shown});
        if !places.is_empty() {
            row["cut"] = places.into();
        }
        self.hint = Some(match (self.showing.keep)(whole) {
            Some(handle) => {
                row["handle"] = handle.as_str().into();
                format!("the next part: {}; in code, whole: load_result(handle)", self.showing.more)
            }
            None => "return or print less: filter, aggregate or slice in the code".into(),
        });
        self.parts.insert(part.to_owned(), row);
    }

    fn into_json(mut self) -> Option<Value> {
        if let Some(hint) = self.hint {
            self.parts.insert("hint".into(), hint.into());
        }
        (!self.parts.is_empty()).then_some(Value::Object(self.parts))
    }
}

/// Files that are taken out of one value.
#[derive(Default)]
struct Files {
    taken: Vec<File>,
    bytes: usize,
    left_out: usize,
}

impl Files {
    /// What stands in the place of a file.
    fn take(&mut self, file: &files::File<'_>) -> String {
        let mut stands = json!({"content": null, "mime_type": file.mime_type, "bytes": file.bytes()});
        if let Some(name) = &file.name {
            stands["name"] = name.as_ref().into();
        }
        if self.taken.len() < FILES_MAX && self.bytes + file.bytes() <= FILE_BYTES_MAX {
            self.bytes += file.bytes();
            self.taken.push(File {
                base64: file.base64.to_owned(),
                mime_type: file.mime_type.clone().into_owned(),
                name: file.name.clone().map(Cow::into_owned),
            });
            stands["content"] = self.taken.len().into();
        } else {
            self.left_out += 1;
            stands["left_out"] =
                format!("at most {FILES_MAX} files of {FILE_BYTES_MAX} bytes are shown").into();
        }
        stands.to_string()
    }
}
