//! One call of an item, which is sent again with each input that its server asks for.

use std::time::{Duration, Instant};

use lockhouse_base::telemetry::traces;
use lockhouse_policies::Item;
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

use super::errors;
use super::requests::{request, verb_request};
use crate::call::{CallError, InputResponses};
use crate::callers::Caller;
use crate::connection::Connection;
use crate::inbound::reading;
use crate::input;
use crate::request::{Patience, Unanswered, send_for};
use crate::result::{Answer, Reading, read_answer};
use crate::slots::Slot;
use crate::state::Offer;
use crate::wire::{Failed, Verb, Wire};

/// Before a call is made again without anything new, the first time. Each further time it is twice as long.
const STATE_ONLY_DELAY: Duration = Duration::from_millis(50);

/// A call, with all that is the same each time that it is sent.
pub(super) struct Rounds<'a> {
    pub(super) connection: &'a Connection,
    pub(super) offer: &'a Offer,
    pub(super) item: &'a Item,
    pub(super) arguments: Map<String, Value>,
    pub(super) patience: Patience,
    pub(super) caller: &'a Caller,
}

/// What follows from one answer of the server.
enum Next {
    /// The call is over.
    Result(Vec<u8>),
    /// It is sent again, with this.
    SendAgain(InputResponses),
}

impl Rounds<'_> {
    /// Sends the call, and sends it again with what its server asks for in between. `turn` is for the first time.
    pub(super) async fn run(self, turn: Slot) -> Result<Vec<u8>, CallError> {
        let mut input = self.wire().map(Wire::take_responses).unwrap_or_default();
        let mut turn = Some(turn);
        for round in 0..input::ROUNDS_MAX {
            let in_turn = match turn.take() {
                Some(turn) => turn,
                None => {
                    let slot = self.connection.slot().await;
                    slot.map_err(|busy| CallError::new(busy.code, busy.message))?
                }
            };
            let raw = self.send(input).await?;
            // While a person is asked, others have their turn.
            drop(in_turn);
            input = match self.next(raw).await? {
                Next::Result(result) => return Ok(result),
                Next::SendAgain(input) => input,
            };
            if input.responses.is_none() {
                // It asks for nothing but to be called again: not at once.
                tokio::time::sleep(STATE_ONLY_DELAY * (1 << round.min(5))).await;
            }
        }
        let rounds = input::ROUNDS_MAX;
        Err(CallError::failed(format!("it asked for input {rounds} times, and is not asked again")))
    }

    fn wire(&self) -> Option<&Wire> {
        self.caller.wire.as_deref()
    }

    /// Sends the call once: the answer as its JSON text.
    async fn send(&self, input: InputResponses) -> Result<String, CallError> {
        let Self { connection, offer, item, caller, patience, .. } = self;
        let ticket = offer.callers.enter(&connection.name, item, caller);
        let request = match self.wire().map(|wire| &wire.verb) {
            None | Some(Verb::Usual) => request(item, self.arguments.clone(), input),
            Some(verb) => verb_request(verb, item),
        };
        let sent = Instant::now();
        let span = traces::requested(&connection.name, item);
        match send_for(caller, ticket, offer.peer.clone(), request, *patience, &span).await {
            Ok(raw) => {
                connection.note(None, sent.elapsed());
                Ok(raw)
            }
            Err(Unanswered::Failed(error)) => {
                traces::fail(&span, errors::kind(&error));
                connection.note(Some(&error), sent.elapsed());
                if let (Some(wire), ServiceError::McpError(error)) = (self.wire(), &error) {
                    errors::own_error(&connection.secrets, error)
                        .into_iter()
                        .for_each(|error| wire.fail(Failed::Error(error)));
                }
                Err(connection.call_error(&error, patience.limit))
            }
            Err(Unanswered::Unanswerable) => Err(input::unanswerable(item)),
        }
    }

    /// Reads an answer, and has the questions in it answered if it asks any.
    async fn next(&self, raw: String) -> Result<Next, CallError> {
        let (of, how) = ((*self.item).clone(), self.reading());
        let read = reading(raw.len(), move || read_answer(&of, raw, how)).await;
        let unread = || CallError::failed("the result could not be read");
        let (server, item, caller) = (&self.connection.name, self.item, self.caller);
        match (read.ok_or_else(unread)??, self.wire()) {
            (Answer::Asks(raw), Some(wire)) if wire.calls_again => {
                input::handed_on(&raw, server, item, caller).map(|raw| Next::Result(raw.into_bytes()))
            }
            (Answer::Asks(raw), _) => Ok(Next::SendAgain(match input::required(&raw)? {
                Some(required) => required.responses(server, item, caller).await?,
                None => InputResponses::default(),
            })),
            (Answer::Result { envelope, .. }, None) => envelope.map(Next::Result),
            (Answer::Result { raw, envelope: Ok(_) }, Some(_)) => Ok(Next::Result(raw.into_bytes())),
            (Answer::Result { raw, envelope: Err(error) }, Some(wire)) => {
                wire.fail(Failed::Result(raw));
                Err(error)
            }
        }
    }

    /// How this server's results are read.
    fn reading(&self) -> Reading {
        let tool = match self.item {
            Item::Tool(name) => self.offer.catalogue.tool(name),
            Item::Resource(_) | Item::Prompt(_) | Item::List(_) => None,
        };
        Reading { wrapped: tool.is_some_and(|tool| tool.wraps), decode: self.connection.decode }
    }
}
