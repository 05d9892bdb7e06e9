//! Truncates the answer to an execution for display: long values and outputs keep their head and tail. The complete
//! value or output is stored, and a handle in the answer gives access to it.

mod embedded_files;
mod returned_files;

use std::borrow::Cow;

use lockhouse_base::json::{self, decode_string, truncate_text};
use lockhouse_gate::result_files::UNKNOWN;
use lockhouse_messages::ResultFile;
use lockhouse_protocol::ResultHandle;
use lockhouse_protocol::json_text::quote_large_integers;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::answer_json::AnswerParts;
use super::call_summary;
use super::display_limits::{CALLS_MAX, DisplayLimits};
use returned_files::AnswerFiles;
pub use returned_files::FileStorage;

/// Options for [`render_answer`], which prepares an answer for the AI client or the user who receives it: how much of
/// the answer is shown, how files in it are shown, and how the rest is stored.
pub struct DisplayOptions<'a> {
    pub limits: DisplayLimits,
    /// The text that tells the reader of a truncated value how to get the next part, such as `get_result(handle)`.
    pub next_part_hint: &'a str,
    /// Whether files in the value are moved out of the JSON into [`RenderedAnswer::files`].
    pub extract_files: bool,
    /// Where files are stored. `None` if they are not stored.
    pub storage: Option<FileStorage<'a>>,
    /// The function that stores a value or output, as JSON text, before it is truncated. It returns the handle of the
    /// stored result, or `None` if it cannot be stored.
    pub keep: &'a dyn Fn(&str) -> Option<ResultHandle>,
}

/// An answer to an execution that is ready for display.
#[derive(Debug)]
pub struct RenderedAnswer {
    pub json: Value,
    /// The files of the answer. Those that were moved out of the value are replaced by an object there, whose member
    /// `content` is the file's position in this list, starting at 1.
    pub files: Vec<ResultFile>,
}

/// Truncates an answer to the display limits, and stores the values and outputs that were truncated.
pub fn render_answer(answer: &Answer, options: &DisplayOptions<'_>) -> RenderedAnswer {
    let mut shown = AnswerParts::empty();
    let mut truncation = TruncationReport { options, parts: Map::new(), hint: None };
    let mut files = AnswerFiles::new(options.storage);
    if let Some(raw) = &answer.value {
        shown.value = Some(render_value(raw.get(), &mut shown.bytes, &mut truncation, &mut files));
    }
    files.add_returned(&answer.files);
    shown.bytes += files.base64_bytes();
    shown.stdout = render_output("stdout", &answer.stdout, &mut shown.bytes, &mut truncation);
    shown.stderr = render_output("stderr", &answer.stderr, &mut shown.bytes, &mut truncation);
    shown.calls = call_summary::summarise(&answer.calls);
    if answer.calls.len() > CALLS_MAX {
        let count = answer.calls.len();
        truncation
            .parts
            .insert("calls".into(), json!({"count": count, "shown": "grouped by tool and outcome"}));
    }
    let mut json = answer.to_json_with(shown);
    if let Some(truncation) = truncation.into_json() {
        json["truncated"] = truncation;
    }
    if !files.rows.is_empty() {
        json["files"] = files.rows.into();
    }
    RenderedAnswer { json, files: files.blocks }
}

/// Replaces each file (base64 data) in the JSON of a value with a short description, for display to a user.
pub fn omit_files(json: &str) -> Cow<'_, str> {
    embedded_files::replace_files(json, |file| {
        let shown = format!("<{}, {} bytes>", file.media_type()?, json::group_thousands(file.bytes()));
        Some(Value::from(shown).to_string())
    })
}

/// Replaces each file and all bytes (base64 data) in the JSON of a stored value by a description, for a model.
pub fn describe_files(json: &str) -> Cow<'_, str> {
    embedded_files::replace_files(json, |file| {
        let mime_type = file.media_type().unwrap_or_else(|| UNKNOWN.to_owned());
        Some(
            json!({"content": null, "mime_type": mime_type, "bytes": file.bytes(), "name": file.name})
                .to_string(),
        )
    })
}

fn render_value(
    whole: &str,
    bytes: &mut usize,
    truncation: &mut TruncationReport<'_>,
    files: &mut AnswerFiles<'_>,
) -> Value {
    let limit = truncation.options.limits.part_bytes;
    let exact = quote_large_integers(whole);
    let json = match truncation.options.extract_files {
        true => embedded_files::replace_files(&exact, |file| files.extract(file)),
        false => exact,
    };
    let text = decode_string(&json);
    let length = text.as_ref().map_or(json.len(), String::len);
    let (value, shown, cut_positions) = match text {
        _ if length <= limit => (tree(&json), length, Vec::new()),
        Some(text) => {
            let shown = truncate_text(&text, limit).unwrap_or(text);
            let length = shown.len();
            (Value::from(shown), length, Vec::new())
        }
        None => {
            let cut = json::truncate(&json, limit);
            let length = cut.json.len();
            (cut.value(), length, cut.omissions)
        }
    };
    *bytes += shown;
    if length > limit || files.omitted > 0 {
        truncation.record("value", whole, length, shown, cut_positions);
    }
    value
}

/// Parses the JSON text of a value. Returns the text as a JSON string if it cannot be parsed, for example because it is
/// nested too deeply.
fn tree(json: &str) -> Value {
    json::parse_bounded(json.as_bytes(), usize::MAX).unwrap_or_else(|_| json.into())
}

fn render_output<'a>(
    part: &str,
    whole: &'a str,
    bytes: &mut usize,
    truncation: &mut TruncationReport<'_>,
) -> Cow<'a, str> {
    let shown = truncate_text(whole, truncation.options.limits.printed_bytes)
        .map_or(Cow::Borrowed(whole), Cow::Owned);
    *bytes += shown.len();
    if shown.len() < whole.len() {
        truncation.record(part, &Value::from(whole).to_string(), whole.len(), shown.len(), Vec::new());
    }
    shown
}

/// The member `truncated` of an answer's JSON. It names the parts of the answer that were shortened, with the handle of
/// each complete part that could be stored, and a hint how to read it.
struct TruncationReport<'a> {
    options: &'a DisplayOptions<'a>,
    parts: Map<String, Value>,
    hint: Option<String>,
}

impl TruncationReport<'_> {
    fn record(&mut self, part: &str, whole: &str, bytes: usize, shown: usize, cut_positions: Vec<Value>) {
        let mut row = json!({"bytes": bytes, "shown": shown});
        if !cut_positions.is_empty() {
            row["cut"] = cut_positions.into();
        }
        self.hint = Some(match (self.options.keep)(whole) {
            Some(handle) => {
                row["handle"] = handle.as_str().into();
                format!(
                    "next part: {}; whole value in code: load_result(handle)",
                    self.options.next_part_hint
                )
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
