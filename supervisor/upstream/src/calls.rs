//! Calls: a permitted one goes out, and its answer or the reason why there is none comes back.

use std::time::{Duration, Instant};

use lockhouse_base::telemetry::{self, traces};
use lockhouse_policies::{Item, Listing, PermittedCall};
use lockhouse_protocol::{Failure, FailureCode};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, ErrorCode, ErrorData,
    GetPromptRequest, GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

use super::callers::Caller;
use super::connection::{Connection, Offer};
use super::followed;
use super::http::HttpFault;
use super::inbound::{CUT_OFF, NOT_JSON, TOO_LARGE, reading};
use super::input::{self, Given};
use super::lists;
use super::request::{Patience, Unanswered, send_for};
use super::result::{Reading, Told, told};
use super::slots::Slot;
use super::wire::{Failed, Verb, Wire};

/// Characters of a server's error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;

/// Before a call is made again without anything new, the first time. Each further time it is twice as long.
const STATE_ONLY_DELAY: Duration = Duration::from_millis(50);

/// Why a call has no result: the kind, and in words.
pub(super) type Unsuccessful = (FailureCode, String);

impl Connection {
    /// Whether the server says that it has such things at all.
    pub fn offers(&self, offer: &Offer, item: &Item) -> Result<(), Failure> {
        let capabilities = offer.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let lacking = match item {
            Item::Tool(_) => None,
            Item::Resource(_) | Item::List(Listing::Resources) => {
                capabilities.resources.is_none().then_some(Listing::Resources)
            }
            Item::Prompt(_) | Item::List(Listing::Prompts) => {
                capabilities.prompts.is_none().then_some(Listing::Prompts)
            }
        };
        let Some(lacking) = lacking else { return Ok(()) };
        let message = format!("server {} offers no {} at all", self.name, lacking.as_str());
        Err(self.failure(FailureCode::UnknownTool, message))
    }

    /// Sends a permitted call, whose turn it is. When the caller stops waiting, the upstream is told that it is cancelled.
    pub async fn call(
        &self,
        offer: &Offer,
        turn: Slot,
        permitted: PermittedCall,
        timeout: Option<Duration>,
        caller: &Caller,
    ) -> Result<Vec<u8>, Failure> {
        let item = &permitted.item().clone();
        // A time that code has set is what it says. The configured one is for a server that has fallen silent.
        let patience = match timeout {
            Some(timeout) => {
                let longest = self.limits.call_timeout_max.max(self.limits.call_timeout);
                Patience { limit: timeout.min(longest), restarts: false }
            }
            None => Patience { limit: self.limits.call_timeout, restarts: true },
        };
        let outcome = match item {
            Item::List(listing) => {
                let sent = Instant::now();
                let list = lists::list(&offer.peer, *listing, patience.limit).await;
                self.note(list.as_ref().err(), sent.elapsed());
                list.map_err(|error| self.told(&error, patience.limit))
            }
            item => self.converse(offer, turn, item, permitted.into_arguments(), patience, caller).await,
        };
        let named = (!matches!(item, Item::List(_))).then(|| item.to_string());
        outcome.map_err(|(code, message)| Failure { tool: named, ..self.failure(code, message) })
    }

    /// Makes a call, and makes it again with what its server asks for in between.
    async fn converse(
        &self,
        offer: &Offer,
        turn: Slot,
        item: &Item,
        arguments: Map<String, Value>,
        patience: Patience,
        caller: &Caller,
    ) -> Result<Vec<u8>, Unsuccessful> {
        let wire = caller.wire.as_deref();
        if matches!(wire, Some(Wire { verb: Verb::Subscribe, .. })) && followed::by_subscription(&offer.peer)
        {
            return self.follow(offer, item, patience.limit).await;
        }
        let mut given = wire.map(Wire::take_given).unwrap_or_default();
        let mut turn = Some(turn);
        for round in 0..input::ROUNDS_MAX {
            let in_turn = match turn.take() {
                Some(turn) => turn,
                None => self.slot().await.map_err(|busy| (busy.code, busy.message))?,
            };
            let ticket = offer.callers.enter(&self.name, item, caller);
            let request = match wire.map(|wire| &wire.verb) {
                None | Some(Verb::Usual) => request(item, arguments.clone(), given),
                Some(verb) => verb_request(verb, item),
            };
            let sent = Instant::now();
            let span = traces::requested(&self.name, item);
            let sending = send_for(caller, ticket, offer.peer.clone(), request, patience, &span);
            let raw = match sending.await {
                Ok(raw) => {
                    self.note(None, sent.elapsed());
                    raw
                }
                Err(Unanswered::Failed(error)) => {
                    traces::fail(&span, error_kind(&error));
                    self.note(Some(&error), sent.elapsed());
                    if let (Some(wire), ServiceError::McpError(error)) = (wire, &error) {
                        self.fail(wire, error);
                    }
                    return Err(self.told(&error, patience.limit));
                }
                Err(Unanswered::Unanswerable) => return Err(input::unanswerable(item)),
            };
            // While a person is asked, others have their turn.
            drop(in_turn);
            let (of, how) = (item.clone(), self.reading(offer, item));
            let told = reading(raw.len(), move || told(&of, raw, how)).await;
            let unread = || (FailureCode::ToolFailed, "the result could not be read".to_owned());
            given = match (told.ok_or_else(unread)??, wire) {
                (Told::Asks(raw), Some(wire)) if wire.calls_again => {
                    return input::handed_on(&raw, &self.name, item, caller).map(String::into_bytes);
                }
                (Told::Asks(raw), _) => match input::required(&raw)? {
                    Some(required) => required.given(&self.name, item, caller).await?,
                    None => Given::default(),
                },
                (Told::Result { envelope, .. }, None) => return envelope,
                (Told::Result { raw, envelope: Ok(_) }, Some(_)) => return Ok(raw.into_bytes()),
                (Told::Result { raw, envelope: Err(failed) }, Some(wire)) => {
                    wire.fail(Failed::Result(raw));
                    return Err(failed);
                }
            };
            if given.responses.is_none() {
                // It asks for nothing but to be called again: not at once.
                tokio::time::sleep(STATE_ONLY_DELAY * (1 << round.min(5))).await;
            }
        }
        let rounds = input::ROUNDS_MAX;
        Err((FailureCode::ToolFailed, format!("it asked for input {rounds} times, and is not asked again")))
    }

    /// Keeps a server's own error for the client that has it directly, but for secrets.
    fn fail(&self, wire: &Wire, error: &ErrorData) {
        if matches!(&*error.message, TOO_LARGE | CUT_OFF | NOT_JSON) {
            return;
        }
        let mut error = error.clone();
        error.message = self.secrets.redact(&error.message).into();
        let data = error.data.take().map(|data| self.secrets.redact(&data.to_string()));
        error.data = data.and_then(|data| serde_json::from_str(&data).ok());
        wire.fail(Failed::Error(error));
    }

    /// How this server's results are read.
    fn reading(&self, offer: &Offer, item: &Item) -> Reading {
        let tool = match item {
            Item::Tool(name) => offer.catalogue.tool(name),
            Item::Resource(_) | Item::Prompt(_) | Item::List(_) => None,
        };
        Reading { wrapped: tool.is_some_and(|tool| tool.wraps), decode: self.decode }
    }

    /// Health is known by real traffic.
    fn note(&self, error: Option<&ServiceError>, took: Duration) {
        telemetry::exchanged(self.name.as_str(), took, error.is_some());
        match error {
            None => self.signals.note(|status| {
                status.latency = Some(took);
                status.answered += 1;
            }),
            Some(ServiceError::Timeout { .. }) => self.signals.suspect.notify_one(),
            Some(_) => {}
        }
    }

    pub(super) fn told(&self, error: &ServiceError, limit: Duration) -> Unsuccessful {
        let name = &self.name;
        if let Some(fault) = HttpFault::in_service(error) {
            let told = format!("server {name} is not available: {}", fault.reason);
            return (FailureCode::UpstreamUnavailable, told);
        }
        match error {
            ServiceError::McpError(error) if error.message == TOO_LARGE => (
                FailureCode::ResultTooLarge,
                format!(
                    "the result of server {name} exceeds the limit of one message; ask for less at a time"
                ),
            ),
            ServiceError::McpError(error) if error.message != CUT_OFF => {
                let code = match error.code {
                    ErrorCode::INVALID_PARAMS => FailureCode::InvalidArguments,
                    ErrorCode::RESOURCE_NOT_FOUND => FailureCode::UnknownTool,
                    _ => FailureCode::ToolFailed,
                };
                (code, self.secrets.redact(&error.message).chars().take(ERROR_CHARS_MAX).collect())
            }
            ServiceError::Timeout { .. } => (
                FailureCode::Timeout,
                format!("server {name} did not answer within {} s", limit.as_secs_f32()),
            ),
            _ => (
                FailureCode::UpstreamUnavailable,
                format!("server {name} ended during the call; whether the call took effect is not known"),
            ),
        }
    }
}

/// For people who watch: a word of ours.
fn error_kind(error: &ServiceError) -> &'static str {
    match error {
        ServiceError::McpError(_) => "mcp_error",
        ServiceError::Timeout { .. } => "timeout",
        ServiceError::Cancelled { .. } => "cancelled",
        _ => "unavailable",
    }
}

/// What code never asks.
#[expect(deprecated)]
fn verb_request(verb: &Verb, item: &Item) -> ClientRequest {
    use rmcp::model::{SubscribeRequest, SubscribeRequestParams};
    let uri = || item.as_str().to_owned();
    match verb {
        Verb::Subscribe => {
            ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri())))
        }
        Verb::Complete(parameters) => {
            ClientRequest::CompleteRequest(CompleteRequest::new((**parameters).clone()))
        }
        Verb::Usual => request(item, Map::new(), Given::default()),
    }
}

fn request(item: &Item, arguments: Map<String, Value>, given: Given) -> ClientRequest {
    let name = item.as_str().to_owned();
    let Given { responses, state } = given;
    match item {
        Item::Resource(_) => {
            let mut parameters = ReadResourceRequestParams::new(name);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters))
        }
        Item::Prompt(_) => {
            let mut parameters = GetPromptRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters))
        }
        Item::Tool(_) | Item::List(_) => {
            let mut parameters = CallToolRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(parameters))
        }
    }
}
