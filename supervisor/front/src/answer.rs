//! Converts an answer of Lockhouse's own tools to an MCP tool result, in the form that is configured for the AI client.
//!
//! The text of a run or of a stored result is read by a model, or by a program that the AI client runs and that parses
//! the text as JSON. Therefore such a text begins with JSON only if it is a complete, final value. Otherwise, the text
//! begins with a sentence, which no JSON parser accepts. The form `structured` is an exception: its text is always
//! JSON.

mod form;
mod record_types;
mod run_text;
mod search_lines;
mod shared_parameters;

use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult, MetaObject,
};
use serde_json::{Value, json};

pub use form::{AnswerForm, AnswerSettings, UnknownForm};

/// The key in `_meta` of a tool result under which Lockhouse sends those members of the answer that are not in its
/// text.
const META_KEY: &str = "lockhouse/run";

/// The kind of an answer of Lockhouse's own tools, such as `run_code`. It decides how the answer's JSON
/// is converted to text.
#[derive(Debug)]
pub(crate) enum AnswerKind {
    /// A finished run.
    Run,
    /// A run that has not ended yet: its state, and the handle by which its answer can be read later.
    Running,
    /// A part of the stored result with this handle.
    Part(ResultHandle),
    /// The tools that a search found.
    Search,
    /// A report, such as the state of the service. Its text is its JSON in every answer form.
    Report,
}

/// An answer of one of Lockhouse's own tools, before its conversion to a tool result.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) kind: AnswerKind,
    /// The complete answer as JSON.
    pub(crate) json: Value,
    pub(crate) is_error: bool,
    /// Files in the value that a program returned. In the tool result, the files follow the first text block. A
    /// placeholder `{"content": N}` in the value therefore refers to its file by the file's index N in the tool
    /// result's `content`.
    pub(crate) files: Vec<ContentBlock>,
}

impl Answer {
    pub(crate) fn new(kind: AnswerKind, json: Value) -> Self {
        Self { kind, json, is_error: false, files: Vec::new() }
    }

    /// Creates the answer to a request that is not valid, with the reason.
    pub(crate) fn invalid_request(message: &str) -> Self {
        let json = json!({"status": "error", "error": {"type": "InvalidRequest", "message": message}});
        Self { is_error: true, ..Self::new(AnswerKind::Run, json) }
    }

    /// Creates the answer to a request that was not carried out, or not to its end, because the process of the engine
    /// ended. `message` says what happened and what to do.
    pub(crate) fn engine_unavailable(message: &str) -> Self {
        let json = json!({"status": "error", "error": {"type": "ServiceUnavailable", "message": message}});
        Self { is_error: true, ..Self::new(AnswerKind::Run, json) }
    }

    /// Converts the answer to a tool result, in the answer form that is configured for the AI client. `reader` is the name
    /// under which the client knows the tool `get_result`.
    pub(crate) fn into_result(mut self, form: AnswerForm, reader: &str) -> CallToolResult {
        run_text::name_preview(&mut self.json);
        let (mut texts, meta) = match form {
            AnswerForm::Structured => (vec![self.structured_text()], None),
            AnswerForm::Text | AnswerForm::Value | AnswerForm::Labelled => {
                (self.texts(form, reader), self.meta(form))
            }
        };
        let mut content = vec![ContentBlock::text(texts.remove(0))];
        content.extend(self.files);
        // Some AI clients join text blocks without a separator: the value 2 and the output 42 would read 242.
        content.extend(texts.into_iter().map(|text| ContentBlock::text(format!("\n{text}"))));
        let mut result = match self.is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        result.meta = meta.map(|meta| MetaObject([(META_KEY.to_owned(), meta)].into_iter().collect()));
        result.structured_content = (form == AnswerForm::Structured).then_some(self.json);
        result
    }

    /// Returns the text that accompanies the structured content of a tool result in the answer form
    /// `structured`.
    fn structured_text(&self) -> String {
        match self.kind {
            AnswerKind::Search => search_lines::lines(&self.json),
            _ => self.json.to_string(),
        }
    }

    /// Returns the text blocks of the answer, at least one.
    fn texts(&self, form: AnswerForm, reader: &str) -> Vec<String> {
        match &self.kind {
            AnswerKind::Run => {
                let mut texts = vec![run_text::first_text(&self.json, form, reader)];
                if !run_text::is_only_value(&self.json, form) {
                    texts.extend(run_text::printed_output(&self.json, reader));
                    texts.extend(run_text::changes(&self.json));
                    texts.extend(run_text::content_aside(&self.json));
                    texts.extend(run_text::files(&self.json));
                    texts.extend(run_text::session_end(&self.json));
                }
                texts
            }
            AnswerKind::Running => {
                let mut texts = vec![run_text::running(&self.json, reader)];
                texts.extend(run_text::output_tail(&self.json));
                texts
            }
            AnswerKind::Part(handle) => vec![run_text::part(&self.json, handle, reader)],
            AnswerKind::Search => vec![search_lines::lines(&self.json)],
            AnswerKind::Report => vec![self.json.to_string()],
        }
    }

    /// Returns the members of the answer that its text does not contain, for `_meta`. An error has its execution id only,
    /// because some AI clients give a model the `_meta` of errors. `None` if there is nothing to add.
    fn meta(&self, form: AnswerForm) -> Option<Value> {
        match &self.kind {
            AnswerKind::Search | AnswerKind::Report => None,
            _ if self.is_error => self.json.get("execution").map(|id| json!({"execution": id})),
            AnswerKind::Running => Some(self.json.clone()),
            AnswerKind::Run | AnswerKind::Part(_) => Some(run_text::remaining_members(&self.json, form)),
        }
    }
}

/// The response to a tool call: an answer that is still to be converted to the AI client's answer form,
/// or a response that is the same in every form.
pub(crate) enum ToolResponse {
    Answer(Answer),
    Other(CallToolResponse),
}

impl ToolResponse {
    /// Converts the response to an MCP response. An answer is converted as in [`Answer::into_result`].
    pub(crate) fn into_mcp(self, form: AnswerForm, reader: &str) -> CallToolResponse {
        match self {
            Self::Answer(answer) => answer.into_result(form, reader).into(),
            Self::Other(response) => response,
        }
    }
}

impl From<Answer> for ToolResponse {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<CreateTaskResult> for ToolResponse {
    fn from(task: CreateTaskResult) -> Self {
        Self::Other(task.into())
    }
}

impl From<InputRequiredResult> for ToolResponse {
    fn from(required: InputRequiredResult) -> Self {
        Self::Other(required.into())
    }
}

#[cfg(test)]
mod tests;
