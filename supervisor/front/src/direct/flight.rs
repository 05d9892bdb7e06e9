//! One call of an AI client to a server that it has directly, until it has landed: what the server and Lockhouse say and ask
//! meanwhile.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::{Owner, Principal};
use lockhouse_engine::supervisor::Landed;
use lockhouse_upstream::ai_client::{Answer, Message, Passed, Posed, Question, Unasked};
use rmcp::model::{
    CustomNotification, ElicitRequest, ErrorData, InputRequest, InputRequiredResult, InputResponses,
    ServerNotification,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use crate::runs::new_handle;
use crate::{ask, calls_again};

/// Calls that wait for their client to come back, at one time: of all, and of one.
const HELD_MAX: usize = 256;
const HELD_OF_ONE_MAX: usize = 32;
/// Stands before a state of ours: one of a server goes to that server.
const OURS: &str = "lockhouse:";
const KEY: &str = "question";

/// A call. It is cancelled when this is dropped.
pub(super) struct Flight {
    pub(super) landed: JoinHandle<Landed>,
    pub(super) messages: mpsc::Receiver<Message>,
    pub(super) _cancelling: DropGuard,
}

/// What an AI client is answered.
pub(super) enum Answered {
    Landed(Landed),
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
    flight: Flight,
    is_sampling: bool,
    reply: oneshot::Sender<Result<Answer, Unasked>>,
}

/// Whether a state is that of a call that waits here.
pub(super) fn is_ours(state: &str) -> bool {
    state.starts_with(OURS)
}

impl Flight {
    /// Stays with it until it lands, or has a question for a client that comes back with the answer.
    pub(super) async fn follow(
        mut self,
        principal: &Principal,
        held: &Held,
        request: &Value,
        context: &RequestContext<RoleServer>,
        logs: Option<u8>,
    ) -> Answered {
        loop {
            let message = tokio::select! {
                biased;
                Some(message) = self.messages.recv() => message,
                landed = &mut self.landed => return over(landed),
                () = context.ct.cancelled() => return cancelled(),
            };
            match message {
                Message::Passed(passed) => pass(passed, context, logs).await,
                // In words of ours, of calls that code makes.
                Message::Progress(_) => {}
                Message::Question(posed) if calls_again(context) => {
                    match held.keep(principal, request, self, posed) {
                        Ok(asked) => return Answered::Asked(asked),
                        Err(flight) => self = flight,
                    }
                }
                Message::Question(posed) if posed.is_over() => {}
                Message::Question(posed) => {
                    let patience = posed.patience();
                    tokio::select! {
                        answer = put(&context.peer, posed.question, patience) => {
                            let _ = posed.answer.send(answer);
                        }
                        landed = &mut self.landed => return over(landed),
                        () = context.ct.cancelled() => return cancelled(),
                    }
                }
            }
        }
    }
}

fn over(landed: Result<Landed, tokio::task::JoinError>) -> Answered {
    match landed {
        Ok(landed) => Answered::Landed(landed),
        Err(_) => Answered::Error(ErrorData::internal_error("the call broke", None)),
    }
}

/// rmcp drops the answer to a cancelled request.
fn cancelled() -> Answered {
    Answered::Error(ErrorData::internal_error("cancelled", None))
}

/// As the server said it, but for the token, which is the client's own.
async fn pass(passed: Passed, context: &RequestContext<RoleServer>, logs: Option<u8>) {
    match passed {
        Passed::Progress(mut progress) => {
            if let Some(token) = context.meta.get_progress_token() {
                progress.progress_token = token;
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        Passed::Log(line) if logs.is_some_and(|least| severity(&line) >= least) => {
            let notification = CustomNotification::new("notifications/message", Some(line));
            let notification = ServerNotification::CustomNotification(notification);
            let _ = context.peer.send_notification(notification).await;
        }
        Passed::Log(_) => {}
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

/// Asks during the call, as the older eras do.
#[expect(deprecated)]
async fn put(
    peer: &Peer<RoleServer>,
    question: Question,
    patience: std::time::Duration,
) -> Result<Answer, Unasked> {
    let Question::Sampling(parameters) = question else { return ask::ask(peer, question, patience).await };
    let parameters: rmcp::model::CreateMessageRequestParams =
        serde_json::from_value(parameters).map_err(|_| Unasked::Unable)?;
    match tokio::time::timeout(patience, peer.create_message(parameters)).await {
        Ok(Ok(message)) => serde_json::to_value(message)
            .map(|message| Answer::Accept(Some(message)))
            .map_err(|_| Unasked::Unable),
        Ok(Err(rmcp::service::ServiceError::McpError(_))) => Ok(Answer::Decline),
        Ok(Err(_)) => Err(Unasked::Unable),
        Err(_) => Ok(Answer::Silence),
    }
}

#[expect(deprecated)]
fn input_request(question: Question) -> Result<InputRequest, Unasked> {
    match question {
        Question::Sampling(parameters) => serde_json::from_value(parameters)
            .map(|parameters| InputRequest::CreateMessage(rmcp::model::CreateMessageRequest::new(parameters)))
            .map_err(|_| Unasked::Unable),
        question => Ok(InputRequest::Elicitation(ElicitRequest::new(ask::parameters(question)?))),
    }
}

impl Held {
    /// Keeps a call until its client comes back, or the question's time is up. The call itself, if it cannot be kept.
    fn keep(
        &self,
        principal: &Principal,
        request: &Value,
        flight: Flight,
        posed: Posed,
    ) -> Result<InputRequiredResult, Flight> {
        let patience = posed.patience();
        let Posed { question, answer: reply, .. } = posed;
        let owner = principal.owner();
        let is_sampling = matches!(question, Question::Sampling(_));
        let mut calls = self.calls();
        let of_one = calls.values().filter(|waiting| waiting.owner == owner).count();
        let asked = match input_request(question) {
            Ok(asked) if calls.len() < HELD_MAX && of_one < HELD_OF_ONE_MAX => asked,
            Ok(_) => {
                let _ = reply.send(Err(Unasked::Busy));
                return Err(flight);
            }
            Err(unasked) => {
                let _ = reply.send(Err(unasked));
                return Err(flight);
            }
        };
        let state = format!("{OURS}{}", new_handle());
        let request = request.clone();
        calls.insert(state.clone(), Waiting { owner, request, flight, is_sampling, reply });
        let (held, name) = (self.clone(), state.clone());
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            held.calls().remove(&name);
        });
        Ok(InputRequiredResult::new(Some([(KEY.to_owned(), asked)].into()), Some(state)))
    }

    /// The call that a client comes back to, with what it brings handed over.
    pub(super) fn resume(
        &self,
        principal: &Principal,
        state: &str,
        request: &Value,
        mut responses: InputResponses,
    ) -> Result<Flight, &'static str> {
        let mut calls = self.calls();
        let waiting = calls.get(state).filter(|waiting| waiting.owner == principal.owner());
        let waiting = waiting.ok_or(
            "nothing waits for this answer: it came too late, or twice, or its requestState was changed. Call again",
        )?;
        if waiting.request != *request {
            return Err("an answer comes with the same parameters as the call that it is for");
        }
        let Some(Waiting { flight, is_sampling, reply, .. }) = calls.remove(state) else {
            return Err("it is gone");
        };
        let said = match responses.remove(KEY) {
            None => Answer::Cancel,
            Some(message) if is_sampling => Answer::Accept(Some(message)),
            Some(said) => serde_json::from_value(said).map_or(Answer::Garbled, ask::answer),
        };
        let _ = reply.send(Ok(said));
        Ok(flight)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock()
    }
}
