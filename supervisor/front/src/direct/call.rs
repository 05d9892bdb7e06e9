//! Follows one call of an AI client to a directly exposed server: forwards progress, log messages and questions until
//! the call ends.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_link::{Exchange, ExchangeStep, GrantedAccess};
use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{
    Answer, AskError, Event, ForwardedNotification, Input, OpenQuestion, Owner, Question, Response,
};
use parking_lot::Mutex;
use rmcp::model::{
    CustomNotification, ErrorData, InputRequiredResult, InputResponses, ProgressNotification,
    ProgressNotificationParam, ServerNotification,
};
use serde_json::Value;

use crate::elicitation;
use crate::elicitation_queue::ElicitationQueue;
use crate::runs::new_handle;

/// Maximum number of suspended calls (calls that wait for the user's answer to a question), of all clients together
/// (`SUSPENDED_MAX`) and per client (`SUSPENDED_PER_CLIENT_MAX`).
/// Bound: approvals and questions.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_PER_CLIENT_MAX: usize = 32;
/// Prefix of the `requestState` of a call that Lockhouse suspended. Any other state belongs to the upstream server.
const STATE_PREFIX: &str = "lockhouse:";
const QUESTION_ID: &str = "question";

/// The outcome of an AI client's call to a directly exposed upstream server.
pub(super) enum CallAnswer {
    Response(Response),
    /// A question to the user. The AI client asks it, and then repeats the request with the answer.
    InputRequired(InputRequiredResult),
    Error(ErrorData),
}

/// Calls that are suspended until the AI client repeats its request with the answer to a question, or the question
/// times out. The key is the `requestState` of the call.
#[derive(Clone, Default)]
pub(crate) struct SuspendedCalls(Arc<Mutex<HashMap<String, SuspendedCall>>>);

struct SuspendedCall {
    owner: Owner,
    /// Target and arguments of the call. When the AI client repeats its request with an answer, they must be the same.
    request: Value,
    call: Exchange,
    is_sampling: bool,
    /// The key by which the engine identifies the question that the user must answer.
    key: String,
}

/// Returns whether a `requestState` belongs to a call that Lockhouse suspended.
pub(super) fn is_suspended_call(state: &str) -> bool {
    state.starts_with(STATE_PREFIX)
}

/// Forwards the events of an AI client's call to a directly exposed upstream server until the call ends,
/// or until a question to the user suspends it.
pub(super) async fn follow_call(
    mut call: Exchange,
    access: &GrantedAccess,
    suspended: &SuspendedCalls,
    request: &Value,
    context: &RequestContext,
    log_threshold: Option<u8>,
) -> CallAnswer {
    let mut questions = ElicitationQueue::new(&context.channel);
    loop {
        let event = tokio::select! {
            biased;
            answered = questions.next_answer(), if questions.has_active() => {
                call.send(Input::Answer(answered.key, answered.answer));
                continue;
            }
            step = call.next() => match step {
                ExchangeStep::Finished(response) => return CallAnswer::Response(response),
                ExchangeStep::Event(event) => event,
            },
            () = context.cancelled.cancelled() => return cancelled_answer(),
        };
        match event {
            Event::Question(question) if context.is_modern() => {
                match suspended.suspend(access, request, call, question) {
                    Ok(input_request) => return CallAnswer::InputRequired(input_request),
                    Err(back) => call = back,
                }
            }
            Event::Question(question) => questions.add(question),
            event => forward(event, context, log_threshold).await,
        }
    }
}

/// Returns the error for a cancelled request. It is a placeholder: a cancelled request has no answer.
fn cancelled_answer() -> CallAnswer {
    CallAnswer::Error(ErrorData::internal_error("cancelled", None))
}

/// Forwards progress notifications and log messages of an upstream server to the AI client. Progress notifications get
/// the progress token of the AI client's request. Log messages below the severity `log_threshold` are dropped, and all
/// of them if it is `None`.
async fn forward(event: Event, context: &RequestContext, log_threshold: Option<u8>) {
    match event {
        Event::Notification(ForwardedNotification::Progress(progress)) => {
            let progress = serde_json::from_value::<ProgressNotificationParam>(progress);
            if let (Ok(mut progress), Some(token)) = (progress, context.meta.get_progress_token()) {
                progress.progress_token = token;
                let notification = ProgressNotification::new(progress);
                context.notify(ServerNotification::ProgressNotification(notification)).await;
            }
        }
        Event::Notification(ForwardedNotification::Log(line)) => {
            if log_threshold.is_some_and(|threshold| severity(&line) >= threshold) {
                let notification = CustomNotification::new("notifications/message", Some(line));
                context.notify(ServerNotification::CustomNotification(notification)).await;
            }
        }
        // The others are not about direct calls, and `follow_call` handles questions.
        Event::Question(_)
        | Event::Questions(_)
        | Event::Following(_)
        | Event::View(_)
        | Event::Detached(_)
        | Event::ProgressMessage(_)
        | Event::Changed(_)
        | Event::Approval(_) => {}
    }
}

/// The severities of MCP log messages, in ascending order.
pub(crate) const SEVERITIES: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn severity(line: &Value) -> u8 {
    let level = line.get("level").and_then(Value::as_str);
    let number = SEVERITIES.iter().position(|severity| Some(*severity) == level);
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default()
}

impl SuspendedCalls {
    /// Suspends a call until the AI client repeats its request or the question times out. Returns the result that asks
    /// the question. If the call cannot be suspended, because there are too many or the kernel provides no random
    /// numbers, returns the call as `Err`, and the question is answered with an error.
    fn suspend(
        &self,
        access: &GrantedAccess,
        request: &Value,
        call: Exchange,
        question: OpenQuestion,
    ) -> Result<InputRequiredResult, Exchange> {
        let OpenQuestion { key, question, time_left } = question;
        let owner = access.owner();
        let is_sampling = matches!(question, Question::Sampling(_));
        let mut calls = self.0.lock();
        let of_client = calls.values().filter(|suspended_call| suspended_call.owner == owner).count();
        let has_capacity = calls.len() < SUSPENDED_MAX && of_client < SUSPENDED_PER_CLIENT_MAX;
        let handle = if has_capacity { new_handle(None) } else { None };
        let unasked = match (elicitation::to_input_request(question), handle) {
            (Ok(input_request), Some(handle)) => {
                let state = format!("{STATE_PREFIX}{handle}");
                let request = request.clone();
                calls.insert(state.clone(), SuspendedCall { owner, request, call, is_sampling, key });
                let (suspended, name) = (self.clone(), state.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(time_left).await;
                    suspended.0.lock().remove(&name);
                });
                return Ok(InputRequiredResult::new(
                    Some([(QUESTION_ID.to_owned(), input_request)].into()),
                    Some(state),
                ));
            }
            (Ok(_), None) => AskError::Busy,
            (Err(unasked), _) => unasked,
        };
        drop(calls);
        call.send(Input::Answer(key, Err(unasked)));
        Err(call)
    }

    /// Resumes a suspended call: passes the AI client's answer to the engine, which continues the call. Returns as
    /// `Err` why the call cannot be resumed.
    pub(super) fn resume(
        &self,
        access: &GrantedAccess,
        state: &str,
        request: &Value,
        mut responses: InputResponses,
    ) -> Result<Exchange, &'static str> {
        let mut calls = self.0.lock();
        let suspended_call = calls.get(state).filter(|suspended_call| suspended_call.owner == access.owner());
        let suspended_call = suspended_call.ok_or(
            "no request waits here for this answer: it came too late, or twice, its requestState was changed, or another host asked the \
             question. The call may have been made: check its effects before you call again",
        )?;
        if suspended_call.request != *request {
            return Err("the repeated request must have the same parameters as the first one");
        }
        let Some(SuspendedCall { call, is_sampling, key, .. }) = calls.remove(state) else {
            return Err("the request has ended");
        };
        drop(calls);
        let answer = match responses.remove(QUESTION_ID) {
            None => Answer::Cancel,
            Some(message) if is_sampling => Answer::Accept(Some(message)),
            Some(answer) => elicitation::parse_answer(answer),
        };
        call.send(Input::Answer(key, Ok(answer)));
        Ok(call)
    }
}
