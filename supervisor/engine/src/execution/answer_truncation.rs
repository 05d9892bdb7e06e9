//! Truncates the answer to an execution for display: long values and outputs keep their head and tail. The complete
//! value or output is stored, and a handle in the answer gives access to it.

mod embedded_files;
mod returned_files;

use std::borrow::Cow;

use lockhouse_base::json::{self, decode_string, truncate_text};
use lockhouse_messages::{CutPart, ResultFile, RunAnswer, ShownText, ShownValue};
use lockhouse_protocol::ResultHandle;
use lockhouse_protocol::json_text::quote_large_integers;
use lockhouse_stores::result_files::UNKNOWN;
use serde_json::{Value, json};

use super::answer::ExecutionAnswer;
use super::call_summary;
use super::complete_answer::{raw, tree};
use super::display_limits::DisplayLimits;
use returned_files::AnswerFiles;
pub use returned_files::FileStorage;

/// Options for [`render_answer`], which prepares an answer for the AI client or the user who receives it: how much of
/// the answer is shown, how files in it are shown, and how the rest is stored.
pub struct DisplayOptions<'a> {
    pub limits: DisplayLimits,
    /// The text that tells the reader of a truncated value how to get the next part, such as `get_result(handle)`.
    pub next_part_hint: &'a str,
    /// Whether files in the value are moved out of the value into [`RenderedAnswer::files`].
    pub extract_files: bool,
    /// Where files are stored.
    pub storage: FileStorage<'a>,
    /// The function that stores a value or output, as JSON text, before it is truncated. It returns the handle of the
    /// stored result, or `None` if it cannot be stored.
    pub keep: &'a dyn Fn(&str) -> Option<ResultHandle>,
}

/// An answer to an execution that is ready for display.
#[derive(Debug)]
pub struct RenderedAnswer {
    pub answer: RunAnswer,
    /// The files of the answer. Those that were moved out of the value are replaced by an object there, whose member
    /// `content` is the file's position in this list, starting at 1.
    pub files: Vec<ResultFile>,
}

/// Builds the answer for its reader: truncates the value and the outputs to the display limits, and stores those that were
/// truncated.
pub fn render_answer(answer: &ExecutionAnswer, options: &DisplayOptions<'_>) -> RenderedAnswer {
    let mut truncation = Truncation { options, hint: None, shown: 0 };
    let mut files = AnswerFiles::new(options.storage);
    let value = answer.value.as_ref().map(|raw| render_value(raw.get(), &mut truncation, &mut files));
    files.add_returned(&answer.files);
    let stdout = truncation.output(&answer.stdout);
    let stderr = truncation.output(&answer.stderr);
    let shown = truncation.shown + files.base64_bytes();
    let AnswerFiles { blocks, reports, .. } = files;
    let answer = RunAnswer {
        value,
        stdout,
        stderr,
        cut_hint: truncation.hint,
        files: reports,
        ..answer.without_results(call_summary::summarise(&answer.calls), shown)
    };
    RenderedAnswer { answer, files: blocks }
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

fn render_value(whole: &str, truncation: &mut Truncation<'_>, files: &mut AnswerFiles<'_>) -> ShownValue {
    let limit = truncation.options.limits.part_bytes;
    let exact = quote_large_integers(whole);
    let json = match truncation.options.extract_files {
        true => embedded_files::replace_files(&exact, |file| files.extract(file)),
        false => exact,
    };
    let text = decode_string(&json);
    let length = text.as_ref().map_or(json.len(), String::len);
    let (value, shown, omissions) = match text {
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
    truncation.shown += shown;
    let is_cut = length > limit || files.omitted > 0;
    let cut = is_cut.then(|| truncation.cut(whole, length, shown, omissions));
    ShownValue { json: raw(&value), cut }
}

/// Truncates the parts of one answer.
struct Truncation<'a> {
    options: &'a DisplayOptions<'a>,
    /// What the reader does about the last part that was truncated.
    hint: Option<String>,
    /// The total size in bytes of the parts as they are shown.
    shown: usize,
}

impl Truncation<'_> {
    fn output(&mut self, whole: &str) -> ShownText {
        let text =
            truncate_text(whole, self.options.limits.printed_bytes).unwrap_or_else(|| whole.to_owned());
        self.shown += text.len();
        let is_cut = text.len() < whole.len();
        let cut =
            is_cut.then(|| self.cut(&Value::from(whole).to_string(), whole.len(), text.len(), Vec::new()));
        ShownText { text, cut }
    }

    /// Stores a part of the answer that is truncated. `whole` is its JSON text.
    fn cut(&mut self, whole: &str, bytes: usize, shown: usize, omissions: Vec<Value>) -> CutPart {
        let handle = (self.options.keep)(whole);
        self.hint = Some(match handle {
            Some(_) => {
                format!(
                    "next part: {}; whole value in code: load_result(handle)",
                    self.options.next_part_hint
                )
            }
            None => "return or print less: filter, aggregate or slice in the code".into(),
        });
        CutPart { bytes, shown, omissions, handle }
    }
}
