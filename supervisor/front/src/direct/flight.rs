//! One call of an AI client to a server that it has directly, until it has landed: what the server and Lockhouse say and ask
//! meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::{Owner, Principal};
use lockhouse_messages::{
    Answer, Event, Exchange, Input, OpenQuestion, Passed, Question, Response, Step, Unasked,
};
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{CustomNotification, ErrorData, InputRequiredResult, InputResponses, ServerNotification};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use crate::asking::Asking;
use crate::runs::new_handle;
use crate::{ask, calls_again};

/// Calls that wait for their client to come back, at one time: of all, and of one.
const HELD_MAX: usize = 256;
const HELD_OF_ONE_MAX: usize = 32;
/// Stands before a state of ours: one of a server goes to that server.
const OURS: &str = "lockhouse:";
const KEY: &str = "question";

/// What an AI client is answered.
pub(super) enum Answered {
    Landed(Response),
    /// A question, for a client that comes back.
    Asked(InputRequiredResult),
    Error(ErrorData),
}

/// Calls whose client was asked something and is to call again.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<HashMap<String, Waiting>>>);

struct Waiting {
    owner: Owner,
    /// A call that comes back is the same call.
    request: Value,
    call: Exchange,
    is_sampling: bool,
    /// Of the question.
    key: String,
}

/// Whether a state is that of a call that waits here.
pub(super) fn is_ours(state: &str) -> bool {
    state.starts_with(OURS)
}

/// Stays with a call until it lands, or has a question for a client that comes back with the answer.
pub(super) async fn follow(
    mut call: Exchange,
    principal: &Principal,
    held: &Held,
    request: &Value,
    context: &RequestContext<RoleServer>,
    logs: Option<u8>,
) -> Answered {
    let mut asking = Asking::new(&context.peer);
    loop {
        let event = tokio::select! {
            biased;
            answered = asking.answered(), if asking.is_open() => {
                call.send(Input::Answer(answered.key, answered.answer));
                continue;
            }
            step = call.next() => match step {
                Step::Over(response) => return Answered::Landed(response),
                Step::Event(event) => event,
            },
            () = context.ct.cancelled() => return cancelled(),
        };
        match event {
            Event::Question(question) if calls_again(context) => {
                match held.keep(principal, request, call, question) {
                    Ok(asked) => return Answered::Asked(asked),
                    Err(back) => call = back,
                }
            }
            Event::Question(question) => asking.add(question),
            event => pass(event, context, logs).await,
        }
    }
}

/// rmcp drops the answer to a cancelled request.
fn cancelled() -> Answered {
    Answered::Error(ErrorData::internal_error("cancelled", None))
}

/// As the server said it, but for the token, which is the client's own.
async fn pass(event: Event, context: &RequestContext<RoleServer>, logs: Option<u8>) {
    match event {
        Event::Passed(Passed::Progress(mut progress)) => {
            if let Some(token) = context.meta.get_progress_token() {
                progress.progress_token = token;
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        Event::Passed(Passed::Log(line)) if logs.is_some_and(|least| severity(&line) >= least) => {
            let notification = CustomNotification::new("notifications/message", Some(line));
            let notification = ServerNotification::CustomNotification(notification);
            let _ = context.peer.send_notification(notification).await;
        }
        _ => {}
    }
}

/// The severities of lines of logs, in their order.
pub(crate) const SEVERITIES: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn severity(line: &Value) -> u8 {
    let level = line.get("level").and_then(Value::as_str);
    let number = SEVERITIES.iter().position(|severity| Some(*severity) == level);
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default()
}

impl Held {
    /// Keeps a call until its client comes back, or the question's time is up. The call itself, if it cannot be kept.
    fn keep(
        &self,
        principal: &Principal,
        request: &Value,
        call: Exchange,
        question: OpenQuestion,
    ) -> Result<InputRequiredResult, Exchange> {
        let OpenQuestion { key, question, patience } = question;
        let owner = principal.owner();
        let is_sampling = matches!(question, Question::Sampling(_));
        let mut calls = self.calls();
        let of_one = calls.values().filter(|waiting| waiting.owner == owner).count();
        let unasked = match ask::input_request(question) {
            Ok(asked) if calls.len() < HELD_MAX && of_one < HELD_OF_ONE_MAX => {
                let state = format!("{OURS}{}", new_handle());
                let request = request.clone();
                calls.insert(state.clone(), Waiting { owner, request, call, is_sampling, key });
                let (held, name) = (self.clone(), state.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(patience).await;
                    held.calls().remove(&name);
                });
                return Ok(InputRequiredResult::new(Some([(KEY.to_owned(), asked)].into()), Some(state)));
            }
            Ok(_) => Unasked::Busy,
            Err(unasked) => unasked,
        };
        drop(calls);
        call.send(Input::Answer(key, Err(unasked)));
        Err(call)
    }

    /// The call that a client comes back to, with what it brings handed over.
    pub(super) fn resume(
        &self,
        principal: &Principal,
        state: &str,
        request: &Value,
        mut responses: InputResponses,
    ) -> Result<Exchange, &'static str> {
        let mut calls = self.calls();
        let waiting = calls.get(state).filter(|waiting| waiting.owner == principal.owner());
        let waiting = waiting.ok_or(
            "nothing waits for this answer: it came too late, or twice, or its requestState was changed. Call again",
        )?;
        if waiting.request != *request {
            return Err("an answer comes with the same parameters as the call that it is for");
        }
        let Some(Waiting { call, is_sampling, key, .. }) = calls.remove(state) else {
            return Err("it is gone");
        };
        drop(calls);
        let said = match responses.remove(KEY) {
            None => Answer::Cancel,
            Some(message) if is_sampling => Answer::Accept(Some(message)),
            Some(said) => ask::meaning(said),
        };
        call.send(Input::Answer(key, Ok(said)));
        Ok(call)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock()
    }
}
