//! Calls: a permitted one goes out, and its answer or the reason why there is none comes back.

use std::time::{Duration, Instant};

use lockhouse_policies::{Item, Listing, PermittedCall};
use lockhouse_protocol::{Failure, FailureCode};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

use super::connection::{Connection, Offer};
use super::http::HttpFault;
use super::request::send;
use super::slots::Slot;
use super::transport::{CUT_OFF, TOO_LARGE};
use super::{lists, result};

/// Characters of a server's error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;

/// Why a call has no result: the kind, and in words.
pub(super) type Unsuccessful = (FailureCode, String);

impl Connection {
    /// Whether the server says that it has such things at all.
    pub(crate) fn offers(&self, offer: &Offer, item: &Item) -> Result<(), Failure> {
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
    pub(crate) async fn call(
        &self,
        offer: &Offer,
        _turn: Slot,
        permitted: PermittedCall,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Failure> {
        let item = permitted.item();
        let limit = match timeout {
            Some(timeout) => timeout.min(self.limits.call_timeout_max.max(self.limits.call_timeout)),
            None => self.limits.call_timeout,
        };
        let sent = Instant::now();
        let answer = match item {
            Item::List(listing) => lists::list(&offer.peer, *listing, limit).await.map(Ok),
            item => {
                let answer = send(offer.peer.clone(), request(item, arguments), limit).await;
                answer.map(|raw| result::envelope(item, &raw))
            }
        };
        self.note(&answer, sent.elapsed());
        let outcome = answer.unwrap_or_else(|error| Err(self.told(&error, limit)));
        let named = (!matches!(item, Item::List(_))).then(|| item.to_string());
        outcome.map_err(|(code, message)| Failure { tool: named, ..self.failure(code, message) })
    }

    /// Health is known by real traffic.
    fn note<T>(&self, answer: &Result<T, ServiceError>, took: Duration) {
        match answer {
            Ok(_) => self.signals.note(|status| {
                status.latency = Some(took);
                status.answered += 1;
            }),
            Err(ServiceError::Timeout { .. }) => self.signals.suspect.notify_one(),
            Err(_) => {}
        }
    }

    fn told(&self, error: &ServiceError, limit: Duration) -> Unsuccessful {
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

fn request(item: &Item, arguments: Map<String, Value>) -> ClientRequest {
    let name = item.as_str().to_owned();
    match item {
        Item::Resource(_) => {
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(ReadResourceRequestParams::new(name)))
        }
        Item::Prompt(_) => {
            let parameters = GetPromptRequestParams::new(name).with_arguments(arguments);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters))
        }
        Item::Tool(_) | Item::List(_) => {
            let parameters = CallToolRequestParams::new(name).with_arguments(arguments);
            ClientRequest::CallToolRequest(CallToolRequest::new(parameters))
        }
    }
}
