//! Serves direct calls: calls of AI clients to upstream servers without code.

use std::sync::Arc;

use lockhouse_gate::ToolRequest;
use lockhouse_messages::{CallOutcome, DirectAction, DirectCall, Event, Input, Response};
use lockhouse_upstream::ai_client::ClientMessage;
use lockhouse_upstream::{DirectFailure, DirectRequest, DirectRequestKind};
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use crate::direct::{LookupError, RequestingClient, json_rpc_error};
use crate::pending_questions::PendingQuestions;
use crate::supervisor::{DirectCallOutcome, Supervisor};

/// Makes one direct call to an upstream server. During the call, forwards the questions and notifications of the server
/// to the front. Cancels the call when the front closes the exchange.
pub(super) async fn serve(
    supervisor: &Arc<Supervisor>,
    client: &RequestingClient,
    call: DirectCall,
    exchange: &mut Exchange,
    cancellation: CancellationToken,
) -> Option<Response> {
    let DirectCall {
        target,
        action,
        arguments,
        supports_input_requests: calls_again,
        input_responses: responses,
        request_state: state,
    } = call;
    let (server, item) = match supervisor.direct().resolve(supervisor, client, &target).await {
        Ok(found) => found,
        Err(LookupError::UnknownTool) => return Some(Response::NotFound),
        Err(LookupError::Invalid(error)) => return Some(Response::Error(error)),
    };
    let verb = match action {
        DirectAction::Use => DirectRequestKind::Usual,
        DirectAction::Subscribe => DirectRequestKind::Subscribe,
        DirectAction::Complete(request) => match crate::direct::completion_request(request, &item) {
            Ok(request) => DirectRequestKind::Complete(Box::new(request)),
            Err(error) => return Some(Response::Error(error)),
        },
    };
    let direct_request = DirectRequest::new(verb, calls_again, responses, state);
    let (channel, mut follower) = client.open_channel();
    let request = ToolRequest::new(server.clone(), item);
    let _cancelling = cancellation.clone().drop_guard();
    let calling =
        supervisor.call_directly(channel, direct_request, request, arguments.into_bytes(), &cancellation);
    tokio::pin!(calling);
    let (mut questions, mut is_open) = (PendingQuestions::default(), true);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(message) = follower.messages.recv() => match message {
                ClientMessage::Forwarded(passed) => exchange.send(Event::Notification(passed)),
                // Progress in Lockhouse's own words exists only for runs of code.
                ClientMessage::Progress(_) => {}
                ClientMessage::Question(pending) => {
                    if let Some(question) = questions.open(pending) {
                        exchange.send(Event::Question(question));
                    }
                }
            },
            outcome = &mut calling => break outcome,
            input = exchange.input(), if is_open => match input {
                Some(Input::Answer(key, answer)) => questions.answer(&key, answer),
                Some(_) => {}
                // The gate records the call as abandoned.
                None => {
                    is_open = false;
                    cancellation.cancel();
                }
            },
        }
    };
    Some(Response::Call(server, to_call_outcome(outcome)))
}

fn to_call_outcome(outcome: DirectCallOutcome) -> CallOutcome {
    let text = |raw: Vec<u8>| match String::from_utf8(raw) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match outcome {
        DirectCallOutcome::Result(raw) => CallOutcome::Result(text(raw)),
        DirectCallOutcome::ServerError(DirectFailure::Result(raw)) => CallOutcome::Result(raw),
        DirectCallOutcome::ServerError(DirectFailure::Error(error)) => {
            CallOutcome::Error(json_rpc_error(error))
        }
        DirectCallOutcome::Failure(failure) => CallOutcome::Failure(failure),
    }
}
