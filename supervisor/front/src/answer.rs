//! Converts an answer of Lockhouse's own tools to an MCP tool result, in the form that is configured for the AI client.
//!
//! The text of a run or of a stored result is read by a model, or by a program that the AI client runs and that parses
//! the text as JSON. Therefore such a text begins with JSON only if it is a complete, final value. Otherwise, the text
//! begins with a sentence, which no JSON parser accepts. The form `structured` is an exception: its text is always
//! JSON.

mod form;
mod part_text;
mod record_types;
mod run_text;
mod running;
mod search_lines;
mod shared_parameters;

use std::sync::Arc;

use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{CutValue, FinishedRun, RequestFailure, RunAnswer, RunStatus, SpanOutcome};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult, MetaObject,
};
use serde_json::Value;

pub use form::{AnswerForm, AnswerSettings, UnknownForm};
pub(crate) use running::RunningAnswer;

use crate::content_blocks::content_block;

/// The key in `_meta` of a tool result under which Lockhouse sends those members of the answer that are not in its
/// text.
const META_KEY: &str = "lockhouse/run";

/// An answer of one of Lockhouse's own tools, such as `run_code`, before its conversion to a tool result.
#[derive(Debug)]
pub(crate) enum ToolAnswer {
    /// A finished run.
    Run(Arc<FinishedRun>),
    /// A request that was not carried out, or not to its end.
    Refused(Box<RunAnswer>),
    /// A run that has not ended yet.
    Running(RunningAnswer),
    /// A part of the stored result with this handle, as JSON.
    Part(ResultHandle, Value),
    /// The tools that a search found, as JSON.
    Search(Value),
    /// A report, such as the state of the service. Its text is its JSON in every answer form.
    Report(Value),
}

impl ToolAnswer {
    /// Creates the answer to a request that is not valid, with the reason.
    pub(crate) fn invalid_request(message: &str) -> Self {
        Self::Refused(Box::new(RunAnswer::without_run("InvalidRequest", message)))
    }

    /// Creates the answer to a request that the engine did not carry out, or not to its end. `what` is what failed if there is
    /// no other reason, such as `the request`.
    pub(crate) fn failed_request(failure: &RequestFailure, what: &str) -> Self {
        let kind = match failure {
            RequestFailure::Unavailable(_) => "ServiceUnavailable",
            RequestFailure::NotFound
            | RequestFailure::Invalid(_)
            | RequestFailure::Error(_)
            | RequestFailure::Refused(_)
            | RequestFailure::DeadlineExceeded
            | RequestFailure::EngineFailed => "InvalidRequest",
        };
        Self::Refused(Box::new(RunAnswer::without_run(kind, failure.describe(what))))
    }

    /// Converts the answer to a tool result, in the answer form that is configured for the AI client. `reader` is the name
    /// under which the client knows the tool `get_result`.
    pub(crate) fn into_result(self, form: AnswerForm, reader: &str) -> CallToolResult {
        let structured = (form == AnswerForm::Structured).then(|| self.to_json(reader));
        let (mut texts, meta) = match &structured {
            Some(json) => (vec![self.structured_text(json)], None),
            None => (self.texts(form, reader), self.meta(form, reader)),
        };
        let mut content = vec![ContentBlock::text(texts.remove(0))];
        content.extend(self.file_blocks());
        // Some AI clients join text blocks without a separator: the value 2 and the output 42 would read 242.
        content.extend(texts.into_iter().map(|text| ContentBlock::text(format!("\n{text}"))));
        let is_error = self.run_answer().is_some_and(|answer| answer.status != RunStatus::Ok);
        let mut result = match is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        result.meta = meta.map(|meta| MetaObject([(META_KEY.to_owned(), meta)].into_iter().collect()));
        result.structured_content = structured;
        result
    }

    /// Returns the answer of a run that has ended or was refused.
    fn run_answer(&self) -> Option<&RunAnswer> {
        match self {
            Self::Run(finished) => Some(&finished.answer),
            Self::Refused(answer) => Some(answer),
            Self::Running(_) | Self::Part(..) | Self::Search(_) | Self::Report(_) => None,
        }
    }

    /// Returns the complete answer as JSON.
    fn to_json(&self, reader: &str) -> Value {
        match self {
            Self::Run(finished) => finished.answer.members(CutValue::Preview).to_json(),
            Self::Refused(answer) => answer.members(CutValue::Preview).to_json(),
            Self::Running(running) => running.to_json(reader),
            Self::Part(_, json) | Self::Search(json) | Self::Report(json) => json.clone(),
        }
    }

    /// Returns the files of the answer. In the tool result, they follow the first text block. A placeholder `{"content": N}`
    /// in the value therefore refers to its file by the file's index N in the tool result's `content`.
    fn file_blocks(&self) -> Vec<ContentBlock> {
        let Self::Run(finished) = self else { return Vec::new() };
        let files = finished.files.iter().zip(1..);
        files.map(|(file, number)| content_block(finished.execution, number, file)).collect()
    }

    /// Returns the text that accompanies the structured content of a tool result in the answer form
    /// `structured`.
    fn structured_text(&self, json: &Value) -> String {
        match self {
            Self::Search(found) => search_lines::lines(found),
            _ => json.to_string(),
        }
    }

    /// Returns the text blocks of the answer, at least one.
    fn texts(&self, form: AnswerForm, reader: &str) -> Vec<String> {
        match self {
            Self::Run(finished) => run_text::texts(&finished.answer, form, reader),
            Self::Refused(answer) => run_text::texts(answer, form, reader),
            Self::Running(running) => running.texts(reader),
            Self::Part(handle, part) => vec![part_text::text(part, handle, reader)],
            Self::Search(found) => vec![search_lines::lines(found)],
            Self::Report(json) => vec![json.to_string()],
        }
    }

    /// Returns the members of the answer that its text does not contain, for `_meta`. `None` if there is nothing to add.
    fn meta(&self, form: AnswerForm, reader: &str) -> Option<Value> {
        match self {
            Self::Run(finished) => run_text::meta(&finished.answer, form),
            Self::Refused(answer) => run_text::meta(answer, form),
            Self::Running(running) => Some(running.to_json(reader)),
            Self::Part(_, part) => Some(part_text::remaining_members(part)),
            Self::Search(_) | Self::Report(_) => None,
        }
    }
}

/// The response to a tool call: an answer that is still to be converted to the AI client's answer form,
/// or a response that is the same in every form.
pub(crate) enum ToolResponse {
    Answer(ToolAnswer),
    /// The result of a server that is exposed directly, as JSON text.
    Text(String),
    Other(CallToolResponse),
}

impl ToolResponse {
    /// Converts the response to JSON text, and returns how the call ended. An answer is converted as in
    /// [`ToolAnswer::into_result`].
    pub(crate) fn into_mcp(
        self,
        form: AnswerForm,
        reader: &str,
        context: &RequestContext,
    ) -> (String, SpanOutcome) {
        let response = match self {
            Self::Answer(answer) => answer.into_result(form, reader).into(),
            Self::Other(response) => response,
            Self::Text(text) => return (text, SpanOutcome::Ok),
        };
        let is_error =
            matches!(&response, CallToolResponse::Complete(result) if result.is_error == Some(true));
        let outcome = if is_error { SpanOutcome::ToolError } else { SpanOutcome::Ok };
        (context.to_text(response), outcome)
    }
}

impl From<ToolAnswer> for ToolResponse {
    fn from(answer: ToolAnswer) -> Self {
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
