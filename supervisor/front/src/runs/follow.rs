//! A request that follows a run: to its answer, to a question, or until the client has waited long enough.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{
    Answer, Course, Event, Exchange, Input, OpenQuestion, PersonWait, Request, Response, RunName, RunState,
    RunView, Step, Unasked,
};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{CallToolResponse, CallToolResult, InputResponses, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::super::display::{Display, LOOK_EVERY};
use super::super::{Front, ask, calls_again, client, invalid, run_code_request};
use super::result;

/// What `get_result` may be asked to wait.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// When a run that cannot go on without its request is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Which tool a request calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    RunCode,
    GetResult,
}

/// A request that follows a run.
struct Following<'a> {
    exchange: Exchange,
    principal: &'a Principal,
    /// Where the run goes on without its requests.
    handle: Option<ResultHandle>,
    tool: Tool,
    arguments: &'a JsonObject,
    wait: Duration,
    /// Whether there may be questions from before this request.
    is_resumed: bool,
}

/// A question that a person is being asked during the request, as the older eras do.
struct Asking<'a> {
    key: String,
    since: Instant,
    answer: Pin<Box<dyn Future<Output = Result<Answer, Unasked>> + Send + 'a>>,
}

impl Front {
    /// `run_code`
    pub(crate) async fn run_code(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let program = match run_code_request(arguments) {
            Ok(program) => program,
            Err(message) => return invalid(&message).into(),
        };
        let exchange = self.open(principal, context, Request::RunCode(program));
        let (tool, wait) = (Tool::RunCode, self.engine.settings().wait);
        let following =
            Following { exchange, principal, handle: None, tool, arguments, wait, is_resumed: false };
        self.follow(following, context).await
    }

    /// A call that comes again, with what the person said.
    pub(crate) async fn resume(
        &self,
        principal: &Principal,
        tool: Tool,
        arguments: &JsonObject,
        (state, responses): (&str, InputResponses),
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let exchange = match self.suspended.resume(principal, state, arguments, responses) {
            Ok(exchange) => exchange,
            Err(message) => return invalid(message).into(),
        };
        let wait = self.engine.settings().wait;
        let (handle, wait) = match tool {
            Tool::RunCode => (None, wait),
            // The same arguments were good the first time.
            Tool::GetResult => (handle(arguments).ok(), waits(arguments, wait).unwrap_or(wait)),
        };
        let following = Following { exchange, principal, handle, tool, arguments, wait, is_resumed: true };
        self.follow(following, context).await
    }

    /// `get_result` of a run. None if the handle is of no run.
    pub(crate) async fn outcome(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        let handle = handle(arguments).ok()?;
        let request = Request::FollowRun(RunName::Handle(handle.clone()));
        let mut exchange = self.open(principal, context, request);
        match exchange.next().await {
            Step::Over(Response::NotFound) => return None,
            Step::Over(response) => return Some(result(response).into()),
            Step::Event(_) => {}
        }
        let wait = match waits(arguments, self.engine.settings().wait) {
            Ok(wait) => wait,
            Err(message) => return Some(invalid(message).into()),
        };
        let (tool, handle) = (Tool::GetResult, Some(handle));
        let following = Following { exchange, principal, handle, tool, arguments, wait, is_resumed: true };
        Some(self.follow(following, context).await)
    }

    /// Begins an exchange for the client of a request.
    pub(crate) fn open(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        request: Request,
    ) -> Exchange {
        let abilities = ask::abilities(context.client_capabilities());
        self.engine.open(principal, client(principal, context), abilities, request)
    }

    async fn follow(
        &self,
        following: Following<'_>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let Following { mut exchange, principal, mut handle, tool, arguments, wait, is_resumed } = following;
        let mut until = Instant::now() + wait;
        let mut display = Display::new(context);
        let mut looking = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut waiting, mut asking): (VecDeque<(OpenQuestion, Instant)>, Option<Asking<'_>>) =
            Default::default();
        // Once its time is over, the request is answered with what the run does then.
        let (mut is_keeping, mut is_leaving) = (false, false);
        // What was asked while nobody followed, or had no answer the last time.
        if is_resumed && calls_again(context) {
            exchange.send(Input::Questions);
        }
        loop {
            if asking.is_none() {
                asking = waiting.pop_front().map(|question| Asking::of(question, context));
            }
            let event = tokio::select! {
                biased;
                // rmcp drops the answer to a cancelled request. A client that cancels its request gives up the run itself.
                () = context.ct.cancelled() => {
                    exchange.send(Input::Cancel);
                    return invalid("cancelled").into();
                }
                step = exchange.next() => match step {
                    Step::Over(response) => return result(response).into(),
                    Step::Event(event) => event,
                },
                answer = Asking::answered(&mut asking), if asking.is_some() => {
                    if let Some(Asking { key, since, .. }) = asking.take() {
                        exchange.send(Input::Answer(key, answer));
                        // The time of a question is no waiting.
                        until += since.elapsed();
                    }
                    continue;
                }
                () = sleep_until(until), if asking.is_none() && !is_keeping && !is_leaving => {
                    is_leaving = handle.is_some();
                    is_keeping = !is_leaving;
                    exchange.send(if is_leaving { Input::View } else { Input::Keep });
                    continue;
                }
                _ = looking.tick(), if display.is_wanted() && !is_leaving => {
                    exchange.send(Input::View);
                    continue;
                }
            };
            match event {
                Event::Note(words) => display.show(&words).await,
                Event::Kept(kept) => {
                    (handle, is_keeping, is_leaving) = (kept, false, true);
                    match &handle {
                        Some(_) => exchange.send(Input::View),
                        None => (is_leaving, until) = (false, Instant::now() + AGAIN_AFTER),
                    }
                }
                Event::View(view) => match &handle {
                    Some(handle) if is_leaving && tool == Tool::RunCode && takes_tasks(context) => {
                        return self.task(&view, handle).into();
                    }
                    Some(handle) if is_leaving => return running(&view, handle).into(),
                    _ => display.view(&view).await,
                },
                Event::Question(question) if calls_again(context) => {
                    exchange.send(match self.suspended.has_room(principal.owner()) {
                        true => Input::Questions,
                        false => Input::Answer(question.key, Err(Unasked::Busy)),
                    });
                }
                Event::Question(question) => {
                    let until = Instant::now() + question.patience;
                    waiting.push_back((question, until));
                }
                Event::Questions(questions) if self.suspended.has_room(principal.owner()) => {
                    match self.suspended.keep(principal.owner(), exchange, questions, arguments) {
                        Ok(required) => return required.into(),
                        Err(back) => exchange = back,
                    }
                }
                Event::Questions(_) | Event::Following(_) | Event::Passed(_) | Event::Changed(_) => {}
            }
        }
    }
}

impl<'a> Asking<'a> {
    fn of((question, until): (OpenQuestion, Instant), context: &'a RequestContext<RoleServer>) -> Self {
        let OpenQuestion { key, question, .. } = question;
        let since = Instant::now();
        let asked = ask::ask(&context.peer, question, until.saturating_duration_since(since));
        Self { key, since, answer: Box::pin(asked) }
    }

    /// Waits for the answer; for ever if nothing is asked.
    async fn answered(asking: &mut Option<Self>) -> Result<Answer, Unasked> {
        match asking {
            Some(asking) => asking.answer.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// What is told of a run that goes on.
fn running(view: &RunView, handle: &ResultHandle) -> CallToolResult {
    let mut progress = Map::new();
    let mut told = json!({
        "execution": view.execution.to_string(), "status": "running", "handle": handle.as_str(),
    });
    progress.insert("elapsed_s".into(), seconds(view.age));
    if matches!(view.state, RunState::Queued) {
        progress.insert("waiting".into(), "for a worker".into());
    }
    let mut hint =
        "the program goes on: get_result(handle) waits for its answer; do not run it again".to_owned();
    if let Some(Course { calls, under_way, person, stdout, .. }) = view.course() {
        if let Some(PersonWait { about, since }) = person {
            progress.insert("waiting".into(), "for a person".into());
            progress.insert("waiting_for".into(), about.as_str().into());
            progress.insert("waiting_s".into(), seconds(*since));
            hint = format!(
                "the program waits for a person ({about}): get_result(handle) waits for its answer; do not run it again"
            );
        }
        progress.insert("calls".into(), (*calls).into());
        if !under_way.is_empty() {
            progress.insert("under_way".into(), json!(under_way));
        }
        if !stdout.is_empty() {
            progress.insert("stdout_tail".into(), stdout.as_str().into());
        }
    }
    told["progress"] = progress.into();
    told["hint"] = hint.into();
    CallToolResult::structured(told)
}

fn seconds(duration: Duration) -> Value {
    (duration.as_millis() as f64 / 1000.0).into()
}

/// The handle among the arguments of `get_result`.
pub(crate) fn handle(arguments: &JsonObject) -> Result<ResultHandle, String> {
    match arguments.get("handle").and_then(Value::as_str).map(ResultHandle::new) {
        Some(handle) => handle.map_err(|invalid| invalid.to_string()),
        None => Err("handle is missing, or is not a string".into()),
    }
}

/// How long `get_result` waits.
fn waits(arguments: &JsonObject, usual: Duration) -> Result<Duration, &'static str> {
    match arguments.get("wait_s") {
        None | Some(Value::Null) => Ok(usual),
        Some(seconds) => {
            let seconds = seconds.as_f64().filter(|seconds| *seconds >= 0.0);
            let seconds = seconds.ok_or("wait_s must be a number of seconds from 0 on")?;
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or(WAIT_MAX).min(WAIT_MAX))
        }
    }
}
