//! The same runs as tasks of MCP's extension, for clients that declare it: a task's id is the handle of its run.

use lockhouse_base::principal::Owner;
use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputResponses, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use serde_json::Value;

use super::super::display::in_words;
use super::run::Over;
use super::{Found, Run, Runs};

/// How often a client may ask.
const POLL_EVERY_MS: u64 = 1_000;

impl Runs {
    /// What a client is told whose run goes on as a task.
    pub(super) async fn task(&self, run: &Run, handle: &ResultHandle) -> CreateTaskResult {
        CreateTaskResult::new(self.described(run, handle).await)
    }

    /// `tasks/get`
    pub(crate) async fn get_task(&self, owner: Owner, id: &str) -> Result<GetTaskResult, ErrorData> {
        let (handle, found) = self.task_of(owner, id)?;
        let task = match found {
            Found::Run(run) => {
                let payload = match run.asked() {
                    Some((input_requests, _)) => TaskPayload::InputRequired { input_requests },
                    None => TaskPayload::Working,
                };
                DetailedTask::new(self.described(&run, &handle).await, payload)
            }
            Found::Over(over) => {
                let task = self.about(&handle, &over.begun, &over.ended);
                DetailedTask::new(task, payload(&over))
            }
        };
        Ok(GetTaskResult::new(task))
    }

    /// `tasks/update`: what the person said.
    pub(crate) fn update_task(
        &self,
        owner: Owner,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        if let (_, Found::Run(run)) = self.task_of(owner, id)? {
            run.answered(responses);
        }
        Ok(())
    }

    /// `tasks/cancel`. One that is over stays as it is.
    pub(crate) fn cancel_task(&self, owner: Owner, id: &str) -> Result<(), ErrorData> {
        if let (_, Found::Run(run)) = self.task_of(owner, id)? {
            run.cancel();
        }
        Ok(())
    }

    fn task_of(&self, owner: Owner, id: &str) -> Result<(ResultHandle, Found), ErrorData> {
        let handle = ResultHandle::new(id).ok();
        let found = handle.and_then(|handle| Some((handle.clone(), self.find(owner, &handle)?)));
        found.ok_or_else(|| {
            let words =
                "there is no such task: each is kept for a while after its end, and for its own client alone";
            ErrorData::invalid_params(words, None)
        })
    }

    async fn described(&self, run: &Run, handle: &ResultHandle) -> Task {
        let now = super::run::in_words(std::time::SystemTime::now());
        let course = run.look().await;
        self.about(handle, &run.begun(), &now).with_status_message(in_words(course.as_ref(), run.age()))
    }

    fn about(&self, handle: &ResultHandle, begun: &str, updated: &str) -> Task {
        let settings = self.supervisor.settings();
        // From its beginning: as long as it may run, and its answer is kept after that.
        let ttl = settings.limits.wall + self.supervisor.results().lifetime();
        Task::new(handle.as_str(), TaskStatus::Working, begun, updated)
            .with_ttl_ms(ttl.as_millis() as u64)
            .with_poll_interval_ms(POLL_EVERY_MS)
    }
}

fn payload(over: &Over) -> TaskPayload {
    if over.cancelled {
        return TaskPayload::Cancelled;
    }
    match serde_json::to_value(&over.result) {
        Ok(Value::Object(result)) => TaskPayload::Completed { result },
        _ => TaskPayload::Failed { error: JsonObject::new() },
    }
}
