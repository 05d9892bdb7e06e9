//! Follows a run on behalf of an MCP request: until the run ends, until it asks the user a question, or
//! until the request has waited long enough.

use std::ops::ControlFlow;
use std::time::Duration;

use lockhouse_link::{Exchange, ExchangeStep, GrantedAccess};
use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{
    AskError, Event, Input, OpenQuestion, Request, RequestId, Response, RunReference, RunView,
};
use lockhouse_protocol::{ExecutionId, ResultHandle};
use rmcp::model::{InputResponses, JsonObject};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::super::progress_notifications::{ProgressReporter, VIEW_INTERVAL};
use super::super::{McpHandler, client_name, elicitation};
use super::request_state;
use super::response_to_answer;
use super::suspended_requests::NotResumed;
use crate::answer::{RunningAnswer, ToolAnswer, ToolResponse};
use crate::elicitation_queue::ElicitationQueue;
use crate::http;
use crate::tool_arguments::{self, run_code_request};

/// Delay before a failed attempt to detach a run from its request is repeated. A detached run continues
/// without its request.
const DETACH_RETRY_DELAY: Duration = Duration::from_secs(1);

const NO_SUSPENDED_REQUEST: &str = "no request waits for this answer: it came too late, or twice, or the host that asked the \
    question has ended. The program has run up to its question, and perhaps further: check its effects before you run it again";
const OTHER_ARGUMENTS: &str = "the repeated call must have the same arguments as the first one";

/// The tool that an MCP request calls to start or follow a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunTool {
    RunCode,
    GetResult,
}

/// An MCP request that waits for a run.
struct RunRequest<'a> {
    exchange: Exchange,
    access: &'a GrantedAccess,
    /// Handle of the run. `None` for the tool `run_code`, until the engine has agreed to let the run continue without
    /// the request.
    handle: Option<ResultHandle>,
    tool: RunTool,
    /// Whether the AI client can send the request again, because it chose its id.
    is_repeatable: bool,
    arguments: &'a JsonObject,
    wait: Duration,
    /// Whether the run may have unanswered questions from before this request.
    is_resumed: bool,
    /// Keys of the questions that this request answers. These questions are not asked again, although the engine may
    /// still list them as pending.
    answered: Vec<String>,
    /// The run, in a cluster.
    run: Option<ExecutionId>,
}

impl<'a> RunRequest<'a> {
    /// Creates a request that starts its run, and that the AI client cannot send again.
    fn new(
        exchange: Exchange,
        access: &'a GrantedAccess,
        tool: RunTool,
        arguments: &'a JsonObject,
        wait: Duration,
    ) -> Self {
        let (handle, is_repeatable, is_resumed, answered, run) = (None, false, false, Vec::new(), None);
        Self { exchange, access, handle, tool, is_repeatable, arguments, wait, is_resumed, answered, run }
    }
}

impl McpHandler {
    /// Serves the tool `run_code`: starts a run and follows it.
    pub(crate) async fn run_code(
        &self,
        access: &GrantedAccess,
        arguments: &JsonObject,
        context: &RequestContext,
    ) -> ToolResponse {
        let program = match run_code_request(arguments) {
            Ok(program) => lockhouse_messages::RunCode {
                for_program: self.is_from_program(access, context),
                claims: http::claims(context),
                ..program
            },
            Err(wrong) => return ToolAnswer::invalid_request(&wrong.to_string()).into(),
        };
        let chosen = match http::idempotency_key(context) {
            Ok(chosen) => chosen,
            Err(wrong) => return ToolAnswer::invalid_request(wrong).into(),
        };
        let exchange = self.open(access, context, chosen, Request::RunCode(program)).await;
        let (tool, wait) = (RunTool::RunCode, self.default_wait(access));
        let request = RunRequest {
            is_repeatable: chosen.is_some(),
            ..RunRequest::new(exchange, access, tool, arguments, wait)
        };
        self.follow(request, context).await
    }

    /// Serves a repeated `run_code` or `get_result` request that contains the user's answers to questions. `follower`
    /// is the `requestState` of the suspended request, and `responses` contains the answers.
    pub(crate) async fn resume_request(
        &self,
        access: &GrantedAccess,
        tool: RunTool,
        arguments: &JsonObject,
        follower: &str,
        responses: InputResponses,
        context: &RequestContext,
    ) -> ToolResponse {
        let (exchange, answered) = match self.suspended.resume(access, follower, arguments, responses) {
            Ok(resumed) => resumed,
            Err(NotResumed::Unknown(responses)) => {
                match self.resume_elsewhere(access, arguments, follower, responses, context).await {
                    Ok(Some(resumed)) => resumed,
                    Err(response) => return response_to_answer(response).into(),
                    Ok(None) => return ToolAnswer::invalid_request(NO_SUSPENDED_REQUEST).into(),
                }
            }
            Err(NotResumed::OtherArguments) => return ToolAnswer::invalid_request(OTHER_ARGUMENTS).into(),
        };
        let (wait, limit) = (self.default_wait(access), self.answers.wait_limit(access));
        let (handle, wait) = match tool {
            RunTool::RunCode => (None, wait),
            // `resume` has compared the arguments with those of the first request, which were valid.
            RunTool::GetResult => (
                tool_arguments::parse_handle(arguments).ok(),
                tool_arguments::parse_wait(arguments, wait, limit).unwrap_or(wait),
            ),
        };
        let run = request_state::run_of(follower, arguments).and_then(|run| self.cluster_run(run));
        let request = RunRequest {
            handle,
            is_resumed: true,
            answered,
            run,
            ..RunRequest::new(exchange, access, tool, arguments, wait)
        };
        self.follow(request, context).await
    }

    /// Resumes a request that another front of the cluster has suspended: follows its run, and passes the user's answers on to it.
    /// Returns the exchange and the keys of the answered questions. `None` if there is no such run.
    ///
    /// # Errors
    /// The response of the engine, if it does not follow a run: the run has ended, or its host cannot be reached.
    async fn resume_elsewhere(
        &self,
        access: &GrantedAccess,
        arguments: &JsonObject,
        state: &str,
        responses: InputResponses,
        context: &RequestContext,
    ) -> Result<Option<(Exchange, Vec<String>)>, Response> {
        let run = self.engine.settings().host_tag.and_then(|_| request_state::run_of(state, arguments));
        let Some(run) = run else { return Ok(None) };
        let request = Request::FollowRun(RunReference::Execution(run));
        let mut exchange = self.open(access, context, None, request).await;
        match exchange.next().await {
            ExchangeStep::Event(Event::Following(_)) => {}
            ExchangeStep::Event(_) | ExchangeStep::Finished(Response::NotFound) => return Ok(None),
            ExchangeStep::Finished(response) => return Err(response),
        }
        let mut answered = Vec::new();
        for (key, response) in responses {
            exchange.send(Input::Answer(key.clone(), Ok(elicitation::parse_answer(response))));
            answered.push(key);
        }
        Ok(Some((exchange, answered)))
    }

    /// Serves the tool `get_result`: follows a run, or reads a page of a stored result.
    pub(crate) async fn get_result(
        &self,
        access: &GrantedAccess,
        arguments: &JsonObject,
        context: &RequestContext,
    ) -> ToolResponse {
        let limit = self.answers.wait_limit(access);
        let parsed = tool_arguments::parse_handle(arguments).and_then(|handle| {
            let wait = tool_arguments::parse_wait(arguments, self.default_wait(access), limit)?;
            Ok((handle, tool_arguments::parse_offset(arguments)?, wait))
        });
        let (handle, offset, wait) = match parsed {
            Ok(parsed) => parsed,
            Err(wrong) => return ToolAnswer::invalid_request(&wrong.to_string()).into(),
        };
        let request = Request::GetResult { handle: handle.clone(), offset };
        let mut exchange = self.open(access, context, None, request).await;
        let first = tokio::select! {
            first = exchange.next() => first,
            () = context.cancelled.cancelled() => {
                exchange.send(Input::Abandon);
                return ToolAnswer::invalid_request("cancelled").into();
            }
        };
        let run = match first {
            ExchangeStep::Finished(Response::Json(page)) => return ToolAnswer::Part(handle, page).into(),
            ExchangeStep::Finished(response) => return response_to_answer(response).into(),
            ExchangeStep::Event(Event::Following(run)) => self.cluster_run(run),
            ExchangeStep::Event(_) => None,
        };
        let request = RunRequest {
            handle: Some(handle),
            is_resumed: true,
            run,
            ..RunRequest::new(exchange, access, RunTool::GetResult, arguments, wait)
        };
        self.follow(request, context).await
    }

    /// Opens an exchange with the engine on behalf of the client of an MCP request: sends a request, with the id that the
    /// client chose for it, and receives its later events and its response.
    pub(crate) async fn open(
        &self,
        access: &GrantedAccess,
        context: &RequestContext,
        chosen: Option<RequestId>,
        request: Request,
    ) -> Exchange {
        let abilities = elicitation::client_abilities(context.client_capabilities());
        let client = client_name(access, context);
        self.engine.open_with_id(chosen, access, client, abilities, request).await
    }

    /// Returns the run if the front is a part of a cluster. Elsewhere, the state of a suspended request does not name it.
    fn cluster_run(&self, run: ExecutionId) -> Option<ExecutionId> {
        self.engine.settings().host_tag.map(|_| run)
    }

    async fn follow(&self, request: RunRequest<'_>, context: &RequestContext) -> ToolResponse {
        // Questions that were asked while no request followed the run, or that the last request left unanswered.
        if request.is_resumed && context.is_modern() {
            request.exchange.send(Input::Questions);
        }
        let mut follower = RunFollower {
            handler: self,
            context,
            until: Instant::now() + request.wait,
            progress: ProgressReporter::new(context),
            questions: ElicitationQueue::new(&context.channel),
            detach: Detach::Attached,
            arrived: Vec::new(),
            request,
        };
        let mut view_ticks = interval_at(Instant::now() + VIEW_INTERVAL, VIEW_INTERVAL);
        view_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_attached = follower.detach == Detach::Attached;
            let event = tokio::select! {
                biased;
                // A client that cancels `run_code` cancels the run. `get_result` may be cancelled by the client's timeout,
                // so that the run only ends if nobody asks for it again; the same holds for a request that the client can
                // send again. A cancelled request has no answer.
                () = context.cancelled.cancelled() => {
                    let RunRequest { tool, is_repeatable, .. } = follower.request;
                    let is_cancelled = tool == RunTool::RunCode && !is_repeatable;
                    follower.request.exchange.send(if is_cancelled { Input::Cancel } else { Input::Abandon });
                    return ToolAnswer::invalid_request("cancelled").into();
                }
                step = follower.request.exchange.next() => match step {
                    ExchangeStep::Finished(response) => return response_to_answer(response).into(),
                    ExchangeStep::Event(event) => event,
                },
                answered = follower.questions.next_answer(), if follower.questions.has_active() => {
                    // Time that the user takes for an answer does not count.
                    follower.until += answered.took;
                    follower.request.exchange.send(Input::Answer(answered.key, answered.answer));
                    continue;
                }
                () = sleep_until(follower.until), if is_attached && !follower.questions.has_active() => {
                    follower.detach();
                    continue;
                }
                _ = view_ticks.tick(), if follower.progress.is_requested() && is_attached => {
                    follower.request.exchange.send(Input::View);
                    continue;
                }
            };
            follower = match follower.handle(event).await {
                ControlFlow::Continue(follower) => follower,
                ControlFlow::Break(response) => return response,
            };
        }
    }
}

/// How far an MCP request has been detached from its run, so that the run continues without it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detach {
    Attached,
    /// The engine was asked to let the run continue without this request.
    Requested,
    /// The engine was asked for the run's state, which becomes the answer to the request.
    Reporting,
}

/// The state of an MCP request that follows a run.
struct RunFollower<'a> {
    handler: &'a McpHandler,
    context: &'a RequestContext,
    request: RunRequest<'a>,
    /// When the request stops waiting for its run. The time that users take to answer questions is added to it.
    until: Instant,
    progress: ProgressReporter,
    questions: ElicitationQueue,
    detach: Detach,
    /// Keys of the questions that arrived while this request follows the run, and for which the engine was asked for
    /// all pending questions.
    arrived: Vec<String>,
}

impl<'a> RunFollower<'a> {
    /// Starts to detach the request from its run, because the request has waited long enough. The run continues, and
    /// the client can get the result later with the handle of the run.
    fn detach(&mut self) {
        let (detach, input) = match self.request.handle {
            Some(_) => (Detach::Reporting, Input::View),
            None => (Detach::Requested, Input::Detach),
        };
        self.detach = detach;
        self.request.exchange.send(input);
    }

    /// Handles an event of the run. Returns `Break` with the response if the event ends the request.
    async fn handle(mut self, event: Event) -> ControlFlow<ToolResponse, Self> {
        match event {
            Event::ProgressMessage(words) => self.progress.report(&words).await,
            Event::Detached(handle) => self.set_kept(handle),
            Event::View(view) => match &self.request.handle {
                Some(handle) if self.detach == Detach::Reporting => {
                    return ControlFlow::Break(self.running_response(&view, handle));
                }
                _ => self.progress.report_view(&view).await,
            },
            Event::Question(question) if self.context.is_modern() => {
                let has_capacity = self.handler.suspended.has_capacity(self.request.access.owner());
                self.request.exchange.send(match has_capacity {
                    true => {
                        self.arrived.push(question.key);
                        Input::Questions
                    }
                    false => Input::Answer(question.key, Err(AskError::Busy)),
                });
            }
            Event::Question(question) => self.questions.add(question),
            Event::Questions(questions) => return self.suspend(questions),
            Event::Following(run) => self.request.run = self.handler.cluster_run(run),
            Event::Notification(_) | Event::Changed(_) | Event::Approval(_) => {}
        }
        ControlFlow::Continue(self)
    }

    /// Handles the engine's reply to [`Input::Detach`], which asks that the run continue without this request. If the
    /// engine refuses, `handle` is `None`, and the engine is asked again after [`DETACH_RETRY_DELAY`].
    fn set_kept(&mut self, handle: Option<ResultHandle>) {
        self.request.handle = handle;
        match self.request.handle {
            Some(_) => self.detach(),
            None => (self.detach, self.until) = (Detach::Attached, Instant::now() + DETACH_RETRY_DELAY),
        }
    }

    fn running_response(&self, view: &RunView, handle: &ResultHandle) -> ToolResponse {
        let capabilities = self.context.client_capabilities();
        let takes_tasks = capabilities.is_some_and(|capabilities| capabilities.supports_tasks());
        match self.request.tool {
            RunTool::RunCode if takes_tasks => self.handler.new_task(view, handle).into(),
            RunTool::RunCode | RunTool::GetResult => {
                let (view, handle) = (view.clone(), handle.clone());
                ToolAnswer::Running(RunningAnswer { view, handle }).into()
            }
        }
    }

    /// Ends the request with the questions to the user as its response, and suspends the request until the client
    /// repeats it with answers. Returns `Continue` if no question can be asked, or if too many requests are suspended; the
    /// questions that have just arrived are then answered with an error.
    fn suspend(mut self, mut questions: Vec<OpenQuestion>) -> ControlFlow<ToolResponse, Self> {
        let owner = self.request.access.owner();
        questions.retain(|question| !self.request.answered.contains(&question.key));
        let arrived = std::mem::take(&mut self.arrived);
        let RunRequest { exchange, arguments, run, .. } = self.request;
        match self.handler.suspended.suspend(owner, exchange, questions, arrived, arguments, run) {
            Ok(required) => ControlFlow::Break(required.into()),
            Err(exchange) => {
                self.request = RunRequest { exchange, ..self.request };
                ControlFlow::Continue(self)
            }
        }
    }
}
