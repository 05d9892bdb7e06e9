//! Calls of AI clients to servers that they have directly.

use std::sync::Arc;

use lockhouse_gate::Asked;
use lockhouse_messages::{Action, CallOutcome, DirectCall, Event, Input, Response};
use lockhouse_upstream::ai_client::Message;
use lockhouse_upstream::{Failed, Verb, Wire};
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use crate::direct::{Client, Unknown};
use crate::questions::Questions;
use crate::supervisor::{Landed, Supervisor};

/// Makes one call, and tells what is said and asked meanwhile. A call that nobody follows any more is cancelled.
pub(super) async fn call(
    supervisor: &Arc<Supervisor>,
    client: &Client,
    call: DirectCall,
    exchange: &mut Exchange,
    over: CancellationToken,
) -> Option<Response> {
    let DirectCall { target, action, arguments, calls_again, responses, state } = call;
    let (server, item) = match supervisor.direct().find(supervisor, client, &target).await {
        Ok(found) => found,
        Err(Unknown::Tool) => return Some(Response::NotFound),
        Err(Unknown::Other(error)) => return Some(Response::Error(error)),
    };
    let verb = match action {
        Action::Use => Verb::Usual,
        Action::Subscribe => Verb::Subscribe,
        Action::Complete(mut request) => {
            crate::direct::name_as_the_server_does(&mut request, &item);
            Verb::Complete(request)
        }
    };
    let wire = Wire::new(verb, calls_again, responses, state);
    let (line, mut followed) = client.line();
    let asked = Asked::new(server.clone(), item);
    let _cancelling = over.clone().drop_guard();
    let calling = supervisor.call_directly(line, wire, asked, arguments.into_bytes(), &over);
    tokio::pin!(calling);
    let (mut questions, mut is_followed) = (Questions::default(), true);
    let landed = loop {
        tokio::select! {
            biased;
            Some(message) = followed.messages.recv() => match message {
                Message::Passed(passed) => exchange.send(Event::Passed(passed)),
                // In words of ours, of calls that code makes.
                Message::Progress(_) => {}
                Message::Question(posed) => {
                    if let Some(question) = questions.open(posed) {
                        exchange.send(Event::Question(question));
                    }
                }
            },
            landed = &mut calling => break landed,
            input = exchange.input(), if is_followed => match input {
                Some(Input::Answer(key, answer)) => questions.answer(&key, answer),
                Some(_) => {}
                // The call is recorded as one that was given up.
                None => {
                    is_followed = false;
                    over.cancel();
                }
            },
        }
    };
    Some(Response::Call(server, outcome(landed)))
}

fn outcome(landed: Landed) -> CallOutcome {
    let text = |raw: Vec<u8>| match String::from_utf8(raw) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match landed {
        Landed::Result(raw) => CallOutcome::Result(text(raw)),
        Landed::Failed(Failed::Result(raw)) => CallOutcome::Result(raw),
        Landed::Failed(Failed::Error(error)) => CallOutcome::Error(error),
        Landed::None(failure) => CallOutcome::Failure(failure),
    }
}
