//! A request that follows a run: to its answer, to a question, or until the client has waited long enough.

use std::ops::ControlFlow;
use std::time::Duration;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{
    Event, Exchange, Input, OpenQuestion, Request, Response, RunName, RunView, Step, Unasked,
};
use lockhouse_protocol::ResultHandle;
use rmcp::model::{CallToolResponse, InputResponses, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::super::display::{Display, LOOK_EVERY};
use super::super::{Front, ask, calls_again, client, invalid};
use super::result;
use super::running::running;
use crate::arguments::{self, run_code_request};
use crate::asking::Asking;

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
    /// Questions that have their answers: the engine may have named them before it had these.
    answered: Vec<String>,
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
            Err(wrong) => return invalid(&wrong.to_string()).into(),
        };
        let exchange = self.open(principal, context, Request::RunCode(program));
        let (tool, wait) = (Tool::RunCode, self.engine.settings().wait);
        let following = Following {
            exchange,
            principal,
            handle: None,
            tool,
            arguments,
            wait,
            is_resumed: false,
            answered: Vec::new(),
        };
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
        let (exchange, answered) = match self.suspended.resume(principal, state, arguments, responses) {
            Ok(resumed) => resumed,
            Err(message) => return invalid(message).into(),
        };
        let wait = self.engine.settings().wait;
        let (handle, wait) = match tool {
            Tool::RunCode => (None, wait),
            // The same arguments were good the first time.
            Tool::GetResult => {
                (arguments::handle(arguments).ok(), arguments::wait(arguments, wait).unwrap_or(wait))
            }
        };
        let following =
            Following { exchange, principal, handle, tool, arguments, wait, is_resumed: true, answered };
        self.follow(following, context).await
    }

    /// `get_result` of a run. None if the handle is of no run.
    pub(crate) async fn outcome(
        &self,
        principal: &Principal,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        let handle = arguments::handle(arguments).ok()?;
        let request = Request::FollowRun(RunName::Handle(handle.clone()));
        let mut exchange = self.open(principal, context, request);
        match exchange.next().await {
            Step::Over(Response::NotFound) => return None,
            Step::Over(response) => return Some(result(response).into()),
            Step::Event(_) => {}
        }
        let wait = match arguments::wait(arguments, self.engine.settings().wait) {
            Ok(wait) => wait,
            Err(wrong) => return Some(invalid(&wrong.to_string()).into()),
        };
        let (tool, handle) = (Tool::GetResult, Some(handle));
        let following = Following {
            exchange,
            principal,
            handle,
            tool,
            arguments,
            wait,
            is_resumed: true,
            answered: Vec::new(),
        };
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
        // What was asked while nobody followed, or had no answer the last time.
        if following.is_resumed && calls_again(context) {
            following.exchange.send(Input::Questions);
        }
        let mut state = State {
            front: self,
            context,
            until: Instant::now() + following.wait,
            display: Display::new(context),
            asking: Asking::new(&context.peer),
            end: End::NotYet,
            following,
        };
        let mut looking = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_waiting = state.end == End::NotYet;
            let event = tokio::select! {
                biased;
                // rmcp drops the answer to a cancelled request. A client that cancels its request gives up the run itself.
                () = context.ct.cancelled() => {
                    state.following.exchange.send(Input::Cancel);
                    return invalid("cancelled").into();
                }
                step = state.following.exchange.next() => match step {
                    Step::Over(response) => return result(response).into(),
                    Step::Event(event) => event,
                },
                answered = state.asking.answered(), if state.asking.is_open() => {
                    // The time of a question is no waiting.
                    state.until += answered.took;
                    state.following.exchange.send(Input::Answer(answered.key, answered.answer));
                    continue;
                }
                () = sleep_until(state.until), if is_waiting && !state.asking.is_open() => {
                    state.leave();
                    continue;
                }
                _ = looking.tick(), if state.display.is_wanted() && is_waiting => {
                    state.following.exchange.send(Input::View);
                    continue;
                }
            };
            state = match state.on(event).await {
                ControlFlow::Continue(state) => state,
                ControlFlow::Break(response) => return response,
            };
        }
    }
}

/// How far a request is with ending before its run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    NotYet,
    /// The engine is asked to let the run go on without it.
    Keeping,
    /// It is answered with what the run does, once that is known.
    Leaving,
}

/// A request that follows a run, between two events.
struct State<'a> {
    front: &'a Front,
    context: &'a RequestContext<RoleServer>,
    following: Following<'a>,
    /// When the client has waited long enough.
    until: Instant,
    display: Display,
    asking: Asking,
    end: End,
}

impl<'a> State<'a> {
    /// The client has waited long enough.
    fn leave(&mut self) {
        let (end, input) = match self.following.handle {
            Some(_) => (End::Leaving, Input::View),
            None => (End::Keeping, Input::Keep),
        };
        self.end = end;
        self.following.exchange.send(input);
    }

    /// Takes in what the engine says. The response, if the request ends with it.
    async fn on(mut self, event: Event) -> ControlFlow<CallToolResponse, Self> {
        match event {
            Event::Note(words) => self.display.show(&words).await,
            Event::Kept(handle) => self.kept(handle),
            Event::View(view) => match &self.following.handle {
                Some(handle) if self.end == End::Leaving => {
                    return ControlFlow::Break(self.goes_on(&view, handle));
                }
                _ => self.display.view(&view).await,
            },
            Event::Question(question) if calls_again(self.context) => {
                let has_room = self.front.suspended.has_room(self.following.principal.owner());
                self.following.exchange.send(match has_room {
                    true => Input::Questions,
                    false => Input::Answer(question.key, Err(Unasked::Busy)),
                });
            }
            Event::Question(question) => self.asking.add(question),
            Event::Questions(questions) => return self.suspend(questions),
            Event::Following(_) | Event::Passed(_) | Event::Changed(_) => {}
        }
        ControlFlow::Continue(self)
    }

    /// Whether the run goes on without this request; it is tried again if not.
    fn kept(&mut self, handle: Option<ResultHandle>) {
        self.following.handle = handle;
        match self.following.handle {
            Some(_) => self.leave(),
            None => (self.end, self.until) = (End::NotYet, Instant::now() + AGAIN_AFTER),
        }
    }

    fn goes_on(&self, view: &RunView, handle: &ResultHandle) -> CallToolResponse {
        let capabilities = self.context.client_capabilities();
        let takes_tasks = capabilities.is_some_and(|capabilities| capabilities.supports_tasks());
        match self.following.tool {
            Tool::RunCode if takes_tasks => self.front.task(view, handle).into(),
            Tool::RunCode | Tool::GetResult => running(view, handle).into(),
        }
    }

    /// Answers the request with questions, as the newest era does. It goes on if there is nothing to ask, or no room.
    fn suspend(mut self, mut questions: Vec<OpenQuestion>) -> ControlFlow<CallToolResponse, Self> {
        let owner = self.following.principal.owner();
        if !self.front.suspended.has_room(owner) {
            return ControlFlow::Continue(self);
        }
        questions.retain(|question| !self.following.answered.contains(&question.key));
        let Following { exchange, arguments, .. } = self.following;
        match self.front.suspended.keep(owner, exchange, questions, arguments) {
            Ok(required) => ControlFlow::Break(required.into()),
            Err(exchange) => {
                self.following = Following { exchange, ..self.following };
                ControlFlow::Continue(self)
            }
        }
    }
}
