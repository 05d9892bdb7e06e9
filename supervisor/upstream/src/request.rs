//! Sends one MCP request to an upstream server, waits for the answer until the timeout, and cancels the request if its
//! caller stops waiting.

use std::time::Duration;

use lockhouse_base::telemetry::traces::{self, TraceContext};
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientRequest, CustomResult, PingRequest, ProtocolVersion, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tracing::Span;

use super::elicitation_conversion;
use super::http;
use super::in_flight_calls::{CallRegistration, Caller};
use crate::ai_client::{AiClient, PausableTimer};

/// How long sending a cancellation to a server may take. No caller waits for it.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Why an MCP request to a server has no result.
#[derive(Debug)]
pub(super) enum RequestError {
    Failed(ServiceError),
    /// The server asked for input that no user can give.
    Unanswerable,
}

impl From<ServiceError> for RequestError {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

/// The timeout of a call to an upstream server.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimeout {
    pub(super) limit: Duration,
    /// Whether the timeout restarts with each progress notification of the server.
    pub(super) restarts_on_progress: bool,
}

/// Sends a request of Lockhouse itself, such as a ping or a list request. Returns the result as JSON text.
pub(super) async fn send(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    limit: Duration,
) -> Result<String, ServiceError> {
    let options = PeerRequestOptions::no_options();
    match exchange(peer, request, options, PausableTimer::unpausable(limit), false, None).await {
        Ok(raw) => Ok(raw),
        Err(RequestError::Failed(error)) => Err(error),
        Err(RequestError::Unanswerable) => Err(ServiceError::UnexpectedResponse),
    }
}

/// Pings the server and returns whether it answered. An error such as "method not found" is an answer, too.
pub(super) async fn ping(peer: Peer<RoleClient>, limit: Duration) -> bool {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    matches!(send(peer, ping, limit).await, Ok(_) | Err(ServiceError::McpError(_)))
}

/// Sends a call on behalf of a caller. Returns the result as JSON text. The timeout pauses while the user is asked a
/// question.
pub(super) async fn send_for(
    caller: &Caller,
    ticket: CallRegistration,
    peer: Peer<RoleClient>,
    request: ClientRequest,
    timeout: CallTimeout,
    span: &Span,
) -> Result<String, RequestError> {
    let clock = caller.questions.timer(timeout.limit);
    let mut options = options_for(caller, &peer);
    set_trace_context(span, &mut options.meta);
    exchange(peer, request, options, clock, timeout.restarts_on_progress, Some(ticket)).await
}

/// Returns the options of a request to an upstream server. From protocol version 2026-07-28 on, the options announce
/// the capabilities of the caller's AI client.
fn options_for(caller: &Caller, peer: &Peer<RoleClient>) -> PeerRequestOptions {
    use crate::ai_client::QuestionKind::{Form, Sampling, Url};
    let mut options = PeerRequestOptions::no_options();
    let is_modern =
        peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    if is_modern {
        let can = |mode| caller.ai_client.as_ref().is_some_and(|ai_client| ai_client.supports(mode));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = elicitation_conversion::capabilities()
            .elicitation
            .filter(|_| can(Form) || can(Url))
            .map(|mut asks| {
                asks.form = asks.form.filter(|_| can(Form));
                asks.url = asks.url.filter(|_| can(Url));
                asks
            });
        if caller.direct.is_some() {
            let names_roots = caller.ai_client.as_ref().is_some_and(AiClient::supports_roots);
            capabilities.sampling = can(Sampling).then(Default::default);
            capabilities.roots = names_roots.then(Default::default);
        }
        let mut meta = RequestMetaObject::default();
        meta.set_client_capabilities(capabilities);
        options.meta = Some(meta);
    }
    options
}

/// Sends a request and waits for its answer in a separate task. If the caller stops waiting, that task cancels the
/// request at the server, which rmcp does not do.
async fn exchange(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    options: PeerRequestOptions,
    mut clock: PausableTimer,
    restarts_on_progress: bool,
    ticket: Option<CallRegistration>,
) -> Result<String, RequestError> {
    let mut handle = peer.send_request_with_option(request, options).await?;
    if let Some(ticket) = &ticket {
        ticket.set_progress_token(handle.progress_token.clone());
    }
    let mut progress = ticket.as_ref().map(|ticket| ticket.progress.clone());
    let (mut answer, waiting) = oneshot::channel();
    tokio::spawn(async move {
        let reason = loop {
            tokio::select! {
                received = &mut handle.rx => {
                    let received = received.unwrap_or(Err(ServiceError::TransportClosed));
                    let _ = answer.send(received.map_err(RequestError::Failed));
                    return;
                }
                limit = clock.expired() => {
                    // Answer first: a server that reads nothing cannot receive the cancellation, and must not delay
                    // the caller.
                    let _ = answer.send(Err(ServiceError::Timeout { timeout: limit }.into()));
                    break "timeout";
                }
                () = unanswerable(ticket.as_ref()) => {
                    let _ = answer.send(Err(RequestError::Unanswerable));
                    break "nobody can be asked";
                }
                () = next(&mut progress), if restarts_on_progress => clock.restart(),
                () = answer.closed() => break "the execution ended",
            }
        };
        drop(ticket);
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, handle.cancel(Some(reason.into()))).await;
    });
    match waiting.await.unwrap_or_else(|_| Err(ServiceError::TransportClosed.into()))? {
        ServerResult::CustomResult(CustomResult(Value::String(raw))) => Ok(raw),
        ServerResult::ListToolsResult(list) => {
            http::raw_list(list).ok_or_else(|| ServiceError::UnexpectedResponse.into())
        }
        _ => Err(ServiceError::UnexpectedResponse.into()),
    }
}

async fn unanswerable(ticket: Option<&CallRegistration>) {
    match ticket {
        Some(ticket) => ticket.unanswerable.notified().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next progress notification of the call. Never returns if no further notification can come.
async fn next(progress: &mut Option<watch::Receiver<u64>>) {
    if let Some(progress) = progress
        && progress.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Adds the trace context of `span` to the metadata of a request, if the span has one.
fn set_trace_context(span: &Span, meta: &mut Option<RequestMetaObject>) {
    let TraceContext { parent: Some(parent), state } = traces::trace_context(span) else { return };
    let meta = meta.get_or_insert_default();
    meta.set_traceparent(parent);
    if let Some(state) = state {
        meta.set_tracestate(state);
    }
}
