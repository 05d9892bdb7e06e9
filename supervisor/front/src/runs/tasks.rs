//! The same runs as tasks of MCP's extension, for clients that declare it: a task's id is the handle of its run.

use lockhouse_base::principal::Principal;
use lockhouse_messages::{
    Abilities, EndedRun, Event, Exchange, Input, Request, Response, RunName, RunView, Step,
};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputResponses, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use serde_json::Value;

use super::super::display::{in_words, rfc3339_now};
use super::super::{Front, ask};
use super::ended_result;
use super::suspended::requests;

/// How often a client may ask.
const POLL_EVERY_MS: u64 = 1_000;

/// What a task's id stands for.
enum Found {
    Run(Exchange),
    Ended(Box<EndedRun>),
}

impl Front {
    /// What a client is told whose run goes on as a task.
    pub(super) fn task(&self, view: &RunView, handle: &ResultHandle) -> CreateTaskResult {
        CreateTaskResult::new(self.described(view, handle))
    }

    /// `tasks/get`
    pub(crate) async fn task_state(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<GetTaskResult, ErrorData> {
        let (handle, found) = self.task_of(principal, id).await?;
        let ended = match found {
            Found::Ended(ended) => ended,
            Found::Run(mut exchange) => match looked_at(&mut exchange).await {
                Ok((questions, view)) => {
                    let (input_requests, patience) = requests(&exchange, questions);
                    let payload = match patience {
                        Some(_) => TaskPayload::InputRequired { input_requests },
                        None => TaskPayload::Working,
                    };
                    return Ok(GetTaskResult::new(DetailedTask::new(
                        self.described(&view, &handle),
                        payload,
                    )));
                }
                Err(Response::Run(ended)) => ended,
                Err(_) => return Err(unknown()),
            },
        };
        let task = self.about(&handle, &ended.begun, &ended.ended);
        Ok(GetTaskResult::new(DetailedTask::new(task, payload(*ended))))
    }

    /// `tasks/update`: what the person said.
    pub(crate) async fn answer_task(
        &self,
        principal: &Principal,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        if let (_, Found::Run(exchange)) = self.task_of(principal, id).await? {
            for (key, said) in responses {
                exchange.send(Input::Answer(key, Ok(ask::meaning(said))));
            }
        }
        Ok(())
    }

    /// `tasks/cancel`. One that is over stays as it is.
    pub(crate) async fn end_task(&self, principal: &Principal, id: &str) -> Result<(), ErrorData> {
        if let (_, Found::Run(exchange)) = self.task_of(principal, id).await? {
            exchange.send(Input::Cancel);
        }
        Ok(())
    }

    async fn task_of(&self, principal: &Principal, id: &str) -> Result<(ResultHandle, Found), ErrorData> {
        let handle = ResultHandle::new(id).map_err(|_| unknown())?;
        let request = Request::FollowRun(RunName::Handle(handle.clone()));
        let mut exchange = self.engine.open(principal, None, Abilities::default(), request);
        loop {
            match exchange.next().await {
                Step::Event(Event::Following(_)) => return Ok((handle, Found::Run(exchange))),
                Step::Event(_) => {}
                Step::Over(Response::Run(ended)) => return Ok((handle, Found::Ended(ended))),
                Step::Over(_) => return Err(unknown()),
            }
        }
    }

    fn described(&self, view: &RunView, handle: &ResultHandle) -> Task {
        self.about(handle, &view.begun, &rfc3339_now()).with_status_message(in_words(view.course(), view.age))
    }

    fn about(&self, handle: &ResultHandle, begun: &str, updated: &str) -> Task {
        let lifetime = self.engine.settings().task_lifetime;
        Task::new(handle.as_str(), TaskStatus::Working, begun, updated)
            .with_ttl_ms(lifetime.as_millis() as u64)
            .with_poll_interval_ms(POLL_EVERY_MS)
    }
}

/// The questions of a run and what it does, or its response if it ended meanwhile.
async fn looked_at(
    exchange: &mut Exchange,
) -> Result<(Vec<lockhouse_messages::OpenQuestion>, RunView), Response> {
    exchange.send(Input::Questions);
    loop {
        match exchange.next().await {
            Step::Event(Event::Questions(questions)) => return Ok((questions, super::view(exchange).await?)),
            Step::Event(_) => {}
            Step::Over(response) => return Err(response),
        }
    }
}

fn unknown() -> ErrorData {
    let words = "there is no such task: each is kept for a while after its end, and for its own client alone";
    ErrorData::invalid_params(words, None)
}

fn payload(ended: EndedRun) -> TaskPayload {
    if ended.cancelled {
        return TaskPayload::Cancelled;
    }
    match serde_json::to_value(ended_result(ended)) {
        Ok(Value::Object(result)) => TaskPayload::Completed { result },
        _ => TaskPayload::Failed { error: JsonObject::new() },
    }
}
