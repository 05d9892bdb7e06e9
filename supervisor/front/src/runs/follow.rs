//! A request that follows a run: to its answer, to a question, or until the client has waited long enough.

use std::time::Duration;

use lockhouse_base::principal::{Owner, Principal};
use lockhouse_base::telemetry;
use lockhouse_engine::execution::{self, Answer, Showing, Shown, Status};
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_protocol::ResultHandle;
use lockhouse_upstream::ai_client::{Course, Line, PersonWait, Unasked};
use rmcp::model::{CallToolResponse, CallToolResult, InputResponses, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::super::display::{Display, LOOK_EVERY};
use super::super::{Front, ask, calls_again, client, code_request, content, invalid};
use super::{Found, Run, Step};

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
    run: Run,
    /// Where the run goes on without its requests.
    handle: Option<ResultHandle>,
    tool: Tool,
    arguments: &'a JsonObject,
    wait: Duration,
}

impl Front {
    /// `run_code`
    pub(crate) async fn run_code(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        match self.start(principal, arguments, context) {
            Ok(run) => {
                let (tool, wait) = (Tool::RunCode, self.supervisor.settings().runs.wait);
                self.follow(Following { run, handle: None, tool, arguments, wait }, context).await
            }
            Err(message) => invalid(&message).into(),
        }
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
        let run = match self.runs.suspended.resume(principal, state, arguments, responses) {
            Ok(run) => run,
            Err(message) => return invalid(message).into(),
        };
        let wait = self.supervisor.settings().runs.wait;
        let (handle, wait) = match tool {
            Tool::RunCode => (None, wait),
            // The same arguments were good the first time.
            Tool::GetResult => (handle(arguments).ok(), waits(arguments, wait).unwrap_or(wait)),
        };
        self.follow(Following { run, handle, tool, arguments, wait }, context).await
    }

    /// `get_result` of a run. None if the handle is of no run.
    pub(crate) async fn outcome(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        let handle = handle(arguments).ok()?;
        let run = match self.runs.find(principal.owner(), &handle)? {
            Found::Over(over) => return Some(over.result.into()),
            Found::Run(run) => run,
        };
        let wait = match waits(arguments, self.supervisor.settings().runs.wait) {
            Ok(wait) => wait,
            Err(message) => return Some(invalid(message).into()),
        };
        let (tool, handle) = (Tool::GetResult, Some(handle));
        Some(self.follow(Following { run, handle, tool, arguments, wait }, context).await)
    }

    fn start(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Run, String> {
        let owner = principal.owner();
        let request = code_request(arguments, owner)?;
        let abilities = ask::abilities(context.client_capabilities());
        let (line, followed) = Line::new(client(principal, context), principal.clone(), abilities);
        let token = self.closing.child_token();
        let (supervisor, stop) = (self.supervisor.clone(), token.clone());
        let answering = async move {
            let answer = supervisor.run_code_for(Some(line), request, &stop).await;
            (shown(&supervisor, owner, &answer), answer.status == Status::Cancelled)
        };
        Ok(Run::start(owner, followed, token, answering))
    }

    async fn follow(
        &self,
        following: Following<'_>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let Following { run, mut handle, tool, arguments, wait } = following;
        let mut until = Instant::now() + wait;
        let mut display = Display::new(context);
        let mut looking = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // What was asked while nobody followed, or had no answer the last time.
        if calls_again(context)
            && let Some(required) = self.runs.suspend(&run, arguments)
        {
            return required;
        }
        loop {
            let step = tokio::select! {
                biased;
                // rmcp drops the answer to a cancelled request.
                () = context.ct.cancelled() => return given_up(&run),
                step = run.next() => step,
                () = sleep_until(until) => {
                    handle = handle.or_else(|| self.runs.keep(&run));
                    match &handle {
                        Some(handle) if tool == Tool::RunCode && takes_tasks(context) => {
                            return self.runs.task(&run, handle).await.into();
                        }
                        Some(handle) => return running(&run, handle).await.into(),
                        None => until = Instant::now() + AGAIN_AFTER,
                    }
                    continue;
                }
                _ = looking.tick(), if display.is_wanted() => {
                    let course = run.look().await;
                    if course.is_some() || run.is_queued() {
                        display.look(course.as_ref(), run.age()).await;
                    }
                    continue;
                }
            };
            match step {
                Step::Over(Some(over)) => return over.result.clone().into(),
                Step::Over(None) => return invalid("the execution broke").into(),
                Step::Progress(words) => display.show(&words).await,
                Step::Question(posed) if calls_again(context) => {
                    if !self.runs.suspended.has_room(run.owner()) {
                        let _ = posed.answer.send(Err(Unasked::Busy));
                        continue;
                    }
                    run.open(posed);
                    if let Some(required) = self.runs.suspend(&run, arguments) {
                        return required;
                    }
                }
                Step::Question(posed) => {
                    let asked = Instant::now();
                    let patience = posed.patience();
                    let asking = ask::ask(&context.peer, posed.question, patience);
                    tokio::pin!(asking);
                    let answer = loop {
                        tokio::select! {
                            biased;
                            () = context.ct.cancelled() => return given_up(&run),
                            answer = &mut asking => break answer,
                            over = run.over() => return over.map_or_else(
                                || invalid("the execution broke").into(),
                                |over| over.result.clone().into(),
                            ),
                            _ = looking.tick(), if display.is_wanted() => {
                                display.look(run.look().await.as_ref(), run.age()).await;
                            }
                        }
                    };
                    let _ = posed.answer.send(answer);
                    // The time of a question is no waiting.
                    until += asked.elapsed();
                }
            }
        }
    }
}

impl super::Runs {
    /// Answers a request with what is asked. None if nothing is, or there is no room.
    fn suspend(&self, run: &Run, arguments: &JsonObject) -> Option<CallToolResponse> {
        if !self.suspended.has_room(run.owner()) {
            return None;
        }
        self.suspended.keep(run, arguments).map(CallToolResponse::from)
    }
}

/// A client that cancels its request gives up the run itself.
fn given_up(run: &Run) -> CallToolResponse {
    run.cancel();
    invalid("cancelled").into()
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// What is told of a run that goes on.
async fn running(run: &Run, handle: &ResultHandle) -> CallToolResult {
    let mut progress = Map::new();
    let mut told = json!({
        "execution": run.execution().to_string(), "status": "running", "handle": handle.as_str(),
    });
    progress.insert("elapsed_s".into(), seconds(run.age()));
    if run.is_queued() {
        progress.insert("waiting".into(), "for a worker".into());
    }
    let mut hint =
        "the program goes on: get_result(handle) waits for its answer; do not run it again".to_owned();
    if let Some(Course { calls, under_way, person, stdout, .. }) = run.look().await {
        if let Some(PersonWait { about, since }) = person {
            progress.insert("waiting".into(), "for a person".into());
            progress.insert("waiting_for".into(), about.as_str().into());
            progress.insert("waiting_s".into(), seconds(since));
            hint = format!(
                "the program waits for a person ({about}): get_result(handle) waits for its answer; do not run it again"
            );
        }
        progress.insert("calls".into(), calls.into());
        if !under_way.is_empty() {
            progress.insert("under_way".into(), json!(under_way));
        }
        if !stdout.is_empty() {
            progress.insert("stdout_tail".into(), stdout.into());
        }
    }
    told["progress"] = progress.into();
    told["hint"] = hint.into();
    CallToolResult::structured(told)
}

fn seconds(duration: Duration) -> Value {
    (duration.as_millis() as f64 / 1000.0).into()
}

fn shown(supervisor: &Supervisor, owner: Owner, answer: &Answer) -> CallToolResult {
    let keep = |json: &str| supervisor.results().keep(owner, json);
    let limits = supervisor.settings().display;
    let more = "get_result(handle)";
    let Shown { json, files } =
        execution::shown(answer, &Showing { limits, more, takes_files: true, keep: &keep });
    telemetry::kept_out(json["stats"]["bytes_kept_out"].as_u64().unwrap_or(0));
    let mut result = match answer.status {
        Status::Ok => CallToolResult::structured(json),
        _ => CallToolResult::structured_error(json),
    };
    let blocks = files.into_iter().enumerate();
    result.content.extend(blocks.map(|(index, file)| content::block(answer.execution, index + 1, file)));
    result
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
