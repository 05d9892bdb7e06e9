//! One request to a server: sent, answered or given up in time.

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

use super::callers::{Caller, Ticket};
use super::elicitation;
use super::http;
use crate::ai_client::{AiClient, Clock};

/// How long telling a server that a request is cancelled may take. Nobody waits for it.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Unanswered {
    Failed(ServiceError),
    /// The server asked for what nobody can give.
    Unanswerable,
}

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error)
    }
}

/// How long a call is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) limit: Duration,
    /// Whether the limit starts again whenever the server tells of progress.
    pub(super) restarts: bool,
}

/// Sends one request of our own, whose result comes back as its JSON text.
pub(super) async fn send(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    limit: Duration,
) -> Result<String, ServiceError> {
    let options = PeerRequestOptions::no_options();
    match exchange(peer, request, options, Clock::plain(limit), false, None).await {
        Ok(raw) => Ok(raw),
        Err(Unanswered::Failed(error)) => Err(error),
        Err(Unanswered::Unanswerable) => Err(ServiceError::UnexpectedResponse),
    }
}

/// Whether the server answers anything at all. That it knows no `ping` is an answer, too.
pub(super) async fn ping(peer: Peer<RoleClient>, limit: Duration) -> bool {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    matches!(send(peer, ping, limit).await, Ok(_) | Err(ServiceError::McpError(_)))
}

/// Sends a call on somebody's behalf. Its time stands still while they are asked something.
pub(super) async fn send_for(
    caller: &Caller,
    ticket: Ticket,
    peer: Peer<RoleClient>,
    request: ClientRequest,
    patience: Patience,
    span: &Span,
) -> Result<String, Unanswered> {
    let clock = caller.questions.clock(patience.limit);
    let mut options = options_for(caller, &peer);
    carry_trace(span, &mut options.meta);
    exchange(peer, request, options, clock, patience.restarts, Some(ticket)).await
}

/// In the era without `initialize` each request says what the client can do: here, what this caller can.
fn options_for(caller: &Caller, peer: &Peer<RoleClient>) -> PeerRequestOptions {
    use crate::ai_client::Mode::{Form, Sampling, Url};
    let mut options = PeerRequestOptions::no_options();
    let is_modern =
        peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    if is_modern {
        let can = |mode| caller.ai_client.as_ref().is_some_and(|ai_client| ai_client.can(mode));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            elicitation::capabilities().elicitation.filter(|_| can(Form) || can(Url)).map(|mut asks| {
                asks.form = asks.form.filter(|_| can(Form));
                asks.url = asks.url.filter(|_| can(Url));
                asks
            });
        if caller.wire.is_some() {
            let names_roots = caller.ai_client.as_ref().is_some_and(AiClient::names_roots);
            capabilities.sampling = can(Sampling).then(Default::default);
            capabilities.roots = names_roots.then(Default::default);
        }
        let mut meta = RequestMetaObject::default();
        meta.set_client_capabilities(capabilities);
        options.meta = Some(meta);
    }
    options
}

/// rmcp forgets a request that nobody waits for without telling the server, so a task of its own stays with it to the end.
async fn exchange(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    options: PeerRequestOptions,
    mut clock: Clock,
    restarts: bool,
    ticket: Option<Ticket>,
) -> Result<String, Unanswered> {
    let mut handle = peer.send_request_with_option(request, options).await?;
    if let Some(ticket) = &ticket {
        ticket.sent(handle.progress_token.clone());
    }
    let mut progress = ticket.as_ref().map(|ticket| ticket.progress.clone());
    let (mut answer, waiting) = oneshot::channel();
    tokio::spawn(async move {
        let reason = loop {
            tokio::select! {
                received = &mut handle.rx => {
                    let received = received.unwrap_or(Err(ServiceError::TransportClosed));
                    let _ = answer.send(received.map_err(Unanswered::Failed));
                    return;
                }
                limit = clock.ends() => {
                    // First of all: a server that reads nothing cannot be told, and must hold nobody up.
                    let _ = answer.send(Err(ServiceError::Timeout { timeout: limit }.into()));
                    break "timeout";
                }
                () = unanswerable(ticket.as_ref()) => {
                    let _ = answer.send(Err(Unanswered::Unanswerable));
                    break "nobody can be asked";
                }
                () = next(&mut progress), if restarts => clock.restart(),
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

async fn unanswerable(ticket: Option<&Ticket>) {
    match ticket {
        Some(ticket) => ticket.unanswerable.notified().await,
        None => std::future::pending().await,
    }
}

/// The next note of progress.
async fn next(progress: &mut Option<watch::Receiver<u64>>) {
    if let Some(progress) = progress
        && progress.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Tells the server of the trace that the request is a part of, if there is one.
fn carry_trace(span: &Span, meta: &mut Option<RequestMetaObject>) {
    let TraceContext { parent: Some(parent), state } = traces::context(span) else { return };
    let meta = meta.get_or_insert_default();
    meta.set_traceparent(parent);
    if let Some(state) = state {
        meta.set_tracestate(state);
    }
}
