//! Runs as MCP tasks, for AI clients that declare the tasks extension. The task id is the run's handle.

use std::sync::Arc;

use lockhouse_link::{Exchange, ExchangeStep, GrantedAccess};
use lockhouse_messages::{
    Event, FinishedRun, Input, InputSupport, Request, RequestFailure, Response, RunReference, RunView,
};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputResponses, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use serde_json::Value;

use super::super::answer::{AnswerForm, ToolAnswer};
use super::super::direct::request_error;
use super::super::progress_notifications::{progress_text, rfc3339_now};
use super::super::{McpHandler, elicitation};
use super::suspended_requests::input_requests;

/// Poll interval in milliseconds that is recommended to clients.
const POLL_INTERVAL_MS: u64 = 1_000;

/// The run that an MCP task id names: still running, or ended.
enum TaskTarget {
    Run(Exchange),
    Ended(Arc<FinishedRun>),
}

impl McpHandler {
    /// Returns the result of `run_code` for a run that continues as an MCP task.
    pub(super) fn new_task(&self, view: &RunView, handle: &ResultHandle) -> CreateTaskResult {
        CreateTaskResult::new(self.running_task(view, handle))
    }

    /// Serves `tasks/get`: returns the state of the run, its pending questions, or its result.
    pub(crate) async fn get_task_state(
        &self,
        access: &GrantedAccess,
        id: &str,
    ) -> Result<GetTaskResult, ErrorData> {
        let (handle, target) = self.find_task(access, id).await?;
        let ended = match target {
            TaskTarget::Ended(ended) => ended,
            TaskTarget::Run(mut exchange) => match questions_and_view(&mut exchange).await {
                Ok((questions, view)) => {
                    let (input_requests, patience) = input_requests(&exchange, questions);
                    let payload = match patience {
                        Some(_) => TaskPayload::InputRequired { input_requests },
                        None => TaskPayload::Working,
                    };
                    return Ok(GetTaskResult::new(DetailedTask::new(
                        self.running_task(&view, &handle),
                        payload,
                    )));
                }
                Err(Response::Run(ended)) => ended,
                Err(response) => return Err(task_error(response)),
            },
        };
        let task = self.task_object(&handle, &ended.begun, &ended.ended);
        let form = self.answers.form_for(access);
        Ok(GetTaskResult::new(DetailedTask::new(task, payload(ended, form, &self.reader_name()))))
    }

    /// Serves `tasks/update`: passes the user's answers to questions on to the run.
    pub(crate) async fn send_task_input(
        &self,
        access: &GrantedAccess,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        if let (_, TaskTarget::Run(exchange)) = self.find_task(access, id).await? {
            for (key, response) in responses {
                exchange.send(Input::Answer(key, Ok(elicitation::parse_answer(response))));
            }
        }
        Ok(())
    }

    /// Serves `tasks/cancel`: cancels the run. Has no effect on a task that has ended.
    pub(crate) async fn cancel_run(&self, access: &GrantedAccess, id: &str) -> Result<(), ErrorData> {
        if let (_, TaskTarget::Run(exchange)) = self.find_task(access, id).await? {
            exchange.send(Input::Cancel);
        }
        Ok(())
    }

    async fn find_task(
        &self,
        access: &GrantedAccess,
        id: &str,
    ) -> Result<(ResultHandle, TaskTarget), ErrorData> {
        let handle = ResultHandle::new(id).map_err(|_| unknown_task())?;
        let request = Request::FollowRun(RunReference::Handle(handle.clone()));
        let mut exchange = self.engine.open(access, None, InputSupport::default(), request).await;
        loop {
            match exchange.next().await {
                ExchangeStep::Event(Event::Following(_)) => return Ok((handle, TaskTarget::Run(exchange))),
                ExchangeStep::Event(_) => {}
                ExchangeStep::Finished(Response::Run(ended)) => {
                    return Ok((handle, TaskTarget::Ended(ended)));
                }
                ExchangeStep::Finished(response) => return Err(task_error(response)),
            }
        }
    }

    fn running_task(&self, view: &RunView, handle: &ResultHandle) -> Task {
        self.task_object(handle, &view.begun, &rfc3339_now())
            .with_status_message(progress_text(view.progress(), view.age))
    }

    fn task_object(&self, handle: &ResultHandle, begun: &str, updated: &str) -> Task {
        let lifetime = self.engine.settings().task_lifetime;
        Task::new(handle.as_str(), TaskStatus::Working, begun, updated)
            .with_ttl_ms(lifetime.as_millis() as u64)
            .with_poll_interval_ms(POLL_INTERVAL_MS)
    }
}

/// Asks the engine for a run's pending questions and state. If the run has ended meanwhile, returns its
/// final response as `Err`.
async fn questions_and_view(
    exchange: &mut Exchange,
) -> Result<(Vec<lockhouse_messages::OpenQuestion>, RunView), Response> {
    exchange.send(Input::Questions);
    loop {
        match exchange.next().await {
            ExchangeStep::Event(Event::Questions(questions)) => {
                return Ok((questions, super::run_view(exchange).await?));
            }
            ExchangeStep::Event(_) => {}
            ExchangeStep::Finished(response) => return Err(response),
        }
    }
}

/// Returns the error for a task about which the engine gave this response instead of its state.
fn task_error(response: Response) -> ErrorData {
    match response.into_failure() {
        RequestFailure::NotFound | RequestFailure::EngineFailed => unknown_task(),
        other => request_error(other, "the request"),
    }
}

fn unknown_task() -> ErrorData {
    let words = "there is no such task: a task is kept for a limited time after its end, and only for the client that started it";
    ErrorData::invalid_params(words, None)
}

fn payload(ended: Arc<FinishedRun>, form: AnswerForm, reader: &str) -> TaskPayload {
    if ended.cancelled {
        return TaskPayload::Cancelled;
    }
    match serde_json::to_value(ToolAnswer::Run(ended).into_result(form, reader)) {
        Ok(Value::Object(result)) => TaskPayload::Completed { result },
        _ => TaskPayload::Failed { error: JsonObject::new() },
    }
}
