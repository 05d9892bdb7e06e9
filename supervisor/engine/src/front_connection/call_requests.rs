//! Serves direct calls: calls of AI clients to upstream servers without code.

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_gate::ToolRequest;
use lockhouse_messages::{
    DirectAction, DirectCall, DirectReply, Event, Input, JsonRpcError, Response, ResumedCall,
};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::ServerName;
use lockhouse_run_channel::{ClientMessage, RunFollower};
use lockhouse_upstream::{DirectFailure, DirectRequest, DirectRequestKind};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::exchange::{Credit, EngineExchange};
use super::{ChosenId, digest_of};
use crate::direct::{ActiveCall, LookupError, NotResumed, completion_request, json_rpc_error};
use crate::runs::Admission;
use crate::supervisor::{DirectCallOutcome, Supervisor, stopped_failure};

/// The name in place of the server in the response to a call that is made while no server is known.
const NO_SERVER: &str = "lockhouse";

/// Makes one direct call to an upstream server, and follows it. `life` cancels the call when its AI client cannot resume it any more.
pub(super) async fn serve(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    id: ChosenId,
    call: DirectCall,
    exchange: &mut EngineExchange,
    life: CancellationToken,
) -> Option<Response> {
    if let Some(message) = supervisor.stop_message() {
        return Some(refuse_stopped(&message));
    }
    if let Some(refused) = refuse_repetition(supervisor, client, id, &call) {
        return Some(refused);
    }
    let (server, item) = match supervisor.direct().resolve(supervisor, client, &call.target).await {
        Ok(found) => found,
        Err(LookupError::UnknownTool) => return Some(Response::NotFound),
        Err(LookupError::Invalid(error)) => return Some(Response::Error(error)),
    };
    let (direct_request, arguments) = match direct_request(call, &item) {
        Ok(request) => request,
        Err(error) => return Some(Response::Error(error)),
    };
    let (channel, follower, _) = supervisor.open_channel(client, true);
    let request = ToolRequest::new(server.clone(), item);
    let (engine, cancelling) = (supervisor.clone(), life.clone());
    // Until the gate has recorded how the call ended.
    let in_flight = supervisor.lifecycle().begin_request();
    let calling = async move {
        let calling = engine.call_directly(channel, direct_request, request, arguments.into_bytes(), &life);
        tokio::pin!(calling);
        let outcome = tokio::select! {
            outcome = &mut calling => outcome,
            () = engine.lifecycle().stopping().cancelled() => {
                life.cancel();
                calling.await
            }
        };
        drop(in_flight);
        outcome
    };
    let calling = tokio::spawn(calling.in_current_span());
    let call = ActiveCall::new(server, calling, follower, cancelling);
    follow(supervisor, client, call, exchange).await
}

/// Resumes a suspended call: sends its questions once more, which the front answers, and follows it.
pub(super) async fn resume(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    ResumedCall { handle, digest }: ResumedCall,
    exchange: &mut EngineExchange,
) -> Option<Response> {
    match supervisor.suspended_calls().resume(client.owner(), &handle, digest) {
        Ok(mut call) => {
            exchange.send(Event::Questions(call.questions.all())).await;
            follow(supervisor, client, call, exchange).await
        }
        Err(NotResumed::Unknown) => Some(Response::NotFound),
        Err(NotResumed::OtherRequest) => Some(Response::Invalid(
            "the repeated request must have the same parameters as the first one".to_owned(),
        )),
    }
}

/// Forwards the questions and notifications of the upstream server to the front until the call ends, or until the front suspends it.
/// Cancels the call when the front closes the exchange.
async fn follow(
    supervisor: &Supervisor,
    client: &Principal,
    mut call: ActiveCall,
    exchange: &mut EngineExchange,
) -> Option<Response> {
    let credit = exchange.credit();
    loop {
        tokio::select! {
            biased;
            Some(message) = next_message(&credit, &mut call.follower) => match message {
                ClientMessage::Forwarded(passed) => exchange.send(Event::Notification(passed)).await,
                // Progress in Lockhouse's own words exists only for runs of code.
                ClientMessage::Progress(_) => {}
                ClientMessage::Question(pending) => {
                    if let Some(question) = call.questions.open(pending) {
                        exchange.send(Event::Question(question)).await;
                    }
                }
            },
            outcome = &mut call.calling => return Some(match outcome {
                Ok(outcome) => Response::Call(call.server, to_reply(outcome)),
                Err(error) => {
                    tracing::error!("a direct call failed: {error}");
                    Response::EngineFailed
                }
            }),
            input = exchange.input() => match input? {
                Input::Answer(key, answer) => call.questions.answer(&key, answer),
                Input::Suspend(digest) => match supervisor.suspended_calls().suspend(client.owner(), digest, call) {
                    Ok(handle) => {
                        exchange.send(Event::Detached(Some(handle))).await;
                        exchange.closed().await;
                        return None;
                    }
                    Err(back) => {
                        call = *back;
                        exchange.send(Event::Detached(None)).await;
                    }
                },
                // The others are about runs of code.
                Input::Questions
                | Input::View
                | Input::Detach
                | Input::Cancel
                | Input::Abandon
                | Input::ChangesDelivered
                | Input::Approval(_) => {}
            },
        }
    }
}

/// Returns the response to a call while the administrator has stopped Lockhouse. No server is known then.
fn refuse_stopped(message: &str) -> Response {
    match ServerName::new(NO_SERVER) {
        Ok(server) => Response::Call(server, DirectReply::Failure(stopped_failure(message))),
        Err(_) => Response::Unavailable(message.to_owned()),
    }
}

/// Returns the response to a call that was made before. `None` if the call is new.
fn refuse_repetition(
    supervisor: &Supervisor,
    client: &Principal,
    id: ChosenId,
    call: &DirectCall,
) -> Option<Response> {
    let digest = id.is_chosen.then(|| digest_of(call));
    match supervisor.runs().admit(client.owner(), id.id, digest) {
        Admission::New => None,
        Admission::Refused(reason) => Some(Response::Invalid(reason.to_owned())),
        // A direct call starts no run.
        Admission::Run(_) => Some(Response::EngineFailed),
    }
}

/// Returns the request to the upstream server, and its arguments as JSON.
fn direct_request(call: DirectCall, item: &CallTarget) -> Result<(DirectRequest, String), JsonRpcError> {
    let verb = match call.action {
        DirectAction::Use => DirectRequestKind::Usual,
        DirectAction::Subscribe => DirectRequestKind::Subscribe,
        DirectAction::Complete(request) => {
            DirectRequestKind::Complete(Box::new(completion_request(request, item)?))
        }
    };
    let DirectCall { arguments, supports_input_requests, input_responses, request_state, .. } = call;
    Ok((DirectRequest::new(verb, supports_input_requests, input_responses, request_state), arguments))
}

/// Waits until the front can get one more event, and returns the next message for the AI client.
async fn next_message(credit: &Credit, follower: &mut RunFollower) -> Option<ClientMessage> {
    credit.available().await;
    follower.messages.recv().await
}

fn to_reply(outcome: DirectCallOutcome) -> DirectReply {
    let text = |raw: Vec<u8>| match String::from_utf8(raw) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match outcome {
        DirectCallOutcome::Result(raw) => DirectReply::Result(text(raw)),
        DirectCallOutcome::ServerError(DirectFailure::Result(raw)) => DirectReply::Result(raw),
        DirectCallOutcome::ServerError(DirectFailure::Error(error)) => {
            DirectReply::Error(json_rpc_error(error))
        }
        DirectCallOutcome::Failure(failure) => DirectReply::Failure(failure),
    }
}
