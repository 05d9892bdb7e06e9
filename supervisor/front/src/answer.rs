//! Converts an answer of Lockhouse's own tools to an MCP tool result, in the form that is configured for the AI client.
//!
//! A model reads the text of an answer, and a program in an AI client's own code mode parses it. Therefore only a whole
//! final value begins with JSON: the text of everything else begins with a sentence, which no JSON parser accepts.

mod form;
mod record_types;
mod run_text;
mod search_lines;

use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult, MetaObject,
};
use serde_json::{Value, json};

pub use form::{AnswerForm, AnswerSettings, UnknownForm};

/// The key in `_meta` of a tool result that holds the members of an answer that its text leaves out.
const META_KEY: &str = "lockhouse/run";

/// What the JSON of an answer describes.
#[derive(Debug)]
pub(crate) enum AnswerKind {
    /// A finished run.
    Run,
    /// A run that is still running.
    Running,
    /// A part of the stored result with this handle.
    Part(ResultHandle),
    /// The tools that a search found.
    Search,
    /// A report whose text is its JSON in every form.
    Report,
}

/// An answer of one of Lockhouse's own tools, before its conversion to a tool result.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) kind: AnswerKind,
    /// The complete answer.
    pub(crate) json: Value,
    pub(crate) is_error: bool,
    /// The files of the value. They follow the first text block, so that a placeholder `{"content": N}` in the value
    /// is the index of its file in the result's content.
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

    /// Converts the answer to a tool result in the given form.
    pub(crate) fn into_result(mut self, form: AnswerForm) -> CallToolResult {
        run_text::name_preview(&mut self.json);
        let (mut texts, meta) = match form {
            AnswerForm::Structured => (vec![self.structured_text()], None),
            AnswerForm::Text | AnswerForm::Value | AnswerForm::Labelled => self.texts(form),
        };
        let mut content = vec![ContentBlock::text(texts.remove(0))];
        content.extend(self.files);
        content.extend(texts.into_iter().map(ContentBlock::text));
        let mut result = match self.is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        result.meta = meta.map(|meta| MetaObject([(META_KEY.to_owned(), meta)].into_iter().collect()));
        result.structured_content = (form == AnswerForm::Structured).then_some(self.json);
        result
    }

    /// Returns the text of the answer in the form `structured`. It stands beside the answer's JSON.
    fn structured_text(&self) -> String {
        match self.kind {
            AnswerKind::Search => search_lines::lines(&self.json),
            _ => self.json.to_string(),
        }
    }

    /// Returns the text blocks of the answer, at least one, and the members of the answer for `_meta`; `None` if the
    /// text has them all.
    fn texts(&self, form: AnswerForm) -> (Vec<String>, Option<Value>) {
        match &self.kind {
            AnswerKind::Run => {
                let mut texts = vec![run_text::first_text(&self.json, form)];
                if form != AnswerForm::Value {
                    texts.extend(run_text::printed_output(&self.json));
                    texts.extend(run_text::changes(&self.json));
                }
                (texts, Some(run_text::remaining_members(&self.json, form)))
            }
            AnswerKind::Running => {
                let mut texts = vec![run_text::running(&self.json)];
                if form != AnswerForm::Value {
                    texts.extend(run_text::output_tail(&self.json));
                }
                (texts, Some(self.json.clone()))
            }
            AnswerKind::Part(handle) => (
                vec![run_text::part(&self.json, handle)],
                Some(run_text::remaining_members(&self.json, form)),
            ),
            AnswerKind::Search => (vec![search_lines::lines(&self.json)], None),
            AnswerKind::Report => (vec![self.json.to_string()], None),
        }
    }
}

/// The response to a call of a tool: an answer whose form is still to be selected, or a response without forms.
pub(crate) enum ToolResponse {
    Answer(Answer),
    Other(CallToolResponse),
}

impl ToolResponse {
    /// Converts the response to an MCP response, with an answer in the given form.
    pub(crate) fn into_mcp(self, form: AnswerForm) -> CallToolResponse {
        match self {
            Self::Answer(answer) => answer.into_result(form).into(),
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
