//! Sends a call to an upstream server, and repeats it with the input that the server requires of the user, up to a
//! maximum number of rounds.

use std::time::{Duration, Instant};

use lockhouse_base::telemetry::traces;
use lockhouse_mcp::ResponseError;
use lockhouse_policies::CallTarget;
use serde_json::{Map, Value};

use super::errors;
use crate::call_concurrency::CallSlot;
use crate::call_result::{CallAnswer, ResultForm, ResultOptions, read_answer};
use crate::call_types::{CallError, InputResponses};
use crate::connection::Connection;
use crate::connection_state::ConnectedServer;
use crate::direct_request::{DirectFailure, DirectRequest};
use crate::input_required;
use crate::outgoing_request::OutgoingRequest;
use crate::request::{CallTimeout, RequestError, send_for};
use lockhouse_mcp::client::inbound_message::offload_if_large;
use lockhouse_run_channel::RunChannel;

/// Delay before a call is repeated if the server asked for the repetition and required no input. The delay doubles with
/// each round, up to 32 times this value.
const STATE_ONLY_DELAY: Duration = Duration::from_millis(50);

/// A call to an upstream server, with everything that stays the same when the call is repeated.
pub(super) struct InputRounds<'a> {
    pub(super) connection: &'a Connection,
    pub(super) offer: &'a ConnectedServer,
    pub(super) item: &'a CallTarget,
    pub(super) arguments: Map<String, Value>,
    pub(super) timeout: CallTimeout,
    pub(super) channel: &'a RunChannel,
    /// The request of an AI client that uses the server directly; `None` for calls of submitted code.
    pub(super) direct: Option<&'a DirectRequest>,
}

/// The action that follows a server's answer to a call.
enum NextStep {
    /// Return this result, as JSON: the call is complete.
    Result(Vec<u8>),
    /// Send the call again, with these answers of the user and this state of the server.
    SendAgain(InputResponses),
}

impl InputRounds<'_> {
    /// Sends the call, and repeats it with the input that the server requires. `slot` (one of the server's slots
    /// for concurrent calls) is used for the first round and freed while the user is asked. Each further round
    /// acquires a new slot.
    pub(super) async fn run(self, slot: CallSlot) -> Result<Vec<u8>, CallError> {
        let mut input = self.direct.map(DirectRequest::take_responses).unwrap_or_default();
        let mut slot = Some(slot);
        for round in 0..input_required::ROUNDS_MAX {
            let current_slot = match slot.take() {
                Some(slot) => slot,
                None => {
                    let slot = self.connection.call_slot(self.channel.execution()).await;
                    slot.map_err(|busy| CallError::new(busy.code, busy.message))?
                }
            };
            let raw = self.send(input).await?;
            // Free the slot while the user is asked.
            drop(current_slot);
            input = match self.next(raw).await? {
                NextStep::Result(result) => return Ok(result),
                NextStep::SendAgain(input) => input,
            };
            if input.responses.is_none() {
                // The server required no input but asked to be called again: wait before doing so.
                tokio::time::sleep(STATE_ONLY_DELAY * (1 << round.min(5))).await;
            }
        }
        let rounds = input_required::ROUNDS_MAX;
        Err(CallError::tool_failed(format!("it asked for input {rounds} times, and is not asked again")))
    }

    /// Sends the call once, with the input that the server required in the previous round. Returns the server's answer
    /// as JSON text.
    async fn send(&self, input: InputResponses) -> Result<String, CallError> {
        let Self { connection, offer, item, channel, timeout, .. } = self;
        let ticket = offer.calls.register(item, channel);
        let request = self.direct.and_then(|direct| OutgoingRequest::direct(&direct.verb, item));
        let request = request.unwrap_or_else(|| OutgoingRequest::new(item, &self.arguments, input));
        let sent = Instant::now();
        let span = traces::upstream_request(&connection.name, item);
        match send_for(channel, ticket, offer, request, *timeout, &span).await {
            Ok(raw) => {
                connection.record_outcome(None, sent.elapsed());
                Ok(raw)
            }
            Err(RequestError::Failed(error)) => {
                traces::record_error(&span, errors::kind(&error));
                connection.record_outcome(Some(&error), sent.elapsed());
                if let (Some(direct), ResponseError::Refused(error)) = (self.direct, &error) {
                    errors::own_error(&connection.secrets, error)
                        .into_iter()
                        .for_each(|error| direct.fail(DirectFailure::Error(error)));
                }
                Err(connection.call_error(&error, timeout.limit))
            }
            Err(RequestError::Unanswerable) => Err(input_required::unanswerable(item)),
        }
    }

    /// Parses `raw`, the server's answer to the call. If the answer requires input, asks the user for the input, or
    /// returns the answer as the result if the AI client itself asks its user.
    async fn next(&self, raw: String) -> Result<NextStep, CallError> {
        let (of, form) = ((*self.item).clone(), self.result_form());
        let read = offload_if_large(raw.len(), move || read_answer(&of, raw, form)).await;
        let unread = || CallError::tool_failed("the result could not be read");
        let (server, item, channel) = (&self.connection.name, self.item, self.channel);
        match (read.ok_or_else(unread)??, self.direct) {
            (CallAnswer::Asks(raw), Some(direct)) if direct.retries_with_input => {
                input_required::forward_to_client(&raw, server, item, channel)
                    .map(|raw| NextStep::Result(raw.into_bytes()))
            }
            (CallAnswer::Asks(raw), _) => Ok(NextStep::SendAgain(match input_required::parse(&raw)? {
                Some(required) => required.responses(server, item, channel).await?,
                None => InputResponses::default(),
            })),
            (CallAnswer::Result(result), _) => Ok(NextStep::Result(result)),
            (CallAnswer::Failed(raw, error), direct) => {
                if let Some(direct) = direct {
                    direct.fail(DirectFailure::Result(raw));
                }
                Err(error)
            }
        }
    }

    fn result_form(&self) -> ResultForm {
        match self.direct {
            Some(_) => ResultForm::Unchanged,
            None => ResultForm::Envelope(self.result_options()),
        }
    }

    /// Returns how the results of the called tool are converted. For resources, prompts and unknown tools, returns the
    /// default.
    fn result_options(&self) -> ResultOptions {
        let tool = match self.item {
            CallTarget::Tool(name) => self.offer.catalogue.tool(name),
            CallTarget::Resource(_) | CallTarget::Prompt(_) | CallTarget::List(_) => None,
        };
        let Some(tool) = tool else { return ResultOptions::default() };
        let decoding = self.connection.decode.for_tool(tool.name.as_str());
        ResultOptions::new(tool.wraps_result, tool.declares_values, decoding)
    }
}
