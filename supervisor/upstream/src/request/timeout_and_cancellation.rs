//! Waits for the answer to an MCP request until the timeout, and sends `notifications/cancelled` if the timeout passes
//! or the caller stops waiting.

use std::time::Duration;

use lockhouse_mcp::LineClient;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomResult, RequestMetaObject, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::oneshot;

use super::RequestError;
use crate::ai_client::PausableTimer;
use crate::http;
use crate::in_flight_calls::CallRegistration;
use crate::outgoing_request::OutgoingRequest;
use crate::peer::Peer;

/// How long sending a cancellation to a server may take. A cancellation is sent in the background, so no caller waits
/// for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason that is sent to a server with the cancellation of a request whose timeout has passed.
const TIMED_OUT: &str = "timeout";
/// The reason that is sent to a server with the cancellation of a request about which it asked a question that no
/// user can answer.
const UNANSWERABLE: &str = "nobody can be asked";
/// The reason that is sent to a server with the cancellation of a request for whose answer the caller no longer waits.
const ABANDONED: &str = "the execution ended";

/// The timeout of a call to an upstream server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimeout {
    pub(crate) limit: Duration,
    /// Whether the timeout restarts with each progress notification of the server.
    pub(crate) restarts_on_progress: bool,
}

/// The conditions under which Lockhouse stops waiting for an answer: the timeout, or a question of the server that no
/// user can answer.
pub(super) struct WaitLimits {
    pub(super) clock: PausableTimer,
    pub(super) restarts_on_progress: bool,
    /// The call for which the request is sent; `None` for a request of Lockhouse itself.
    pub(super) call: Option<CallRegistration>,
}

impl WaitLimits {
    /// Waits until a condition is met and the request must be given up. Returns the error for the caller, and the
    /// reason that is sent to the server. Cancel-safe.
    async fn reached(&mut self) -> (RequestError, &'static str) {
        let Self { clock, restarts_on_progress, call } = self;
        let Some(call) = call else {
            return (ServiceError::Timeout { timeout: clock.expired().await }.into(), TIMED_OUT);
        };
        loop {
            tokio::select! {
                timeout = clock.expired() => return (ServiceError::Timeout { timeout }.into(), TIMED_OUT),
                () = call.unanswerable() => return (RequestError::Unanswerable, UNANSWERABLE),
                () = call.progressed(), if *restarts_on_progress => clock.restart(),
            }
        }
    }
}

/// Sends a request and waits for its answer. Returns the result as JSON text. `meta` is additional metadata of the request.
/// If one of `limits` is reached or the caller stops waiting, cancels the request at the server.
pub(super) async fn exchange(
    peer: &Peer,
    request: OutgoingRequest<'_>,
    meta: Option<RequestMetaObject>,
    limits: WaitLimits,
) -> Result<String, RequestError> {
    match peer {
        Peer::Lines(client) => exchange_over_lines(client, request, meta, limits).await,
        Peer::Http(peer) => {
            let mut options = PeerRequestOptions::no_options();
            options.meta = meta;
            exchange_over_http(peer.clone(), request.into_client_request(), options, limits).await
        }
    }
}

async fn exchange_over_lines(
    client: &LineClient,
    request: OutgoingRequest<'_>,
    meta: Option<RequestMetaObject>,
    mut limits: WaitLimits,
) -> Result<String, RequestError> {
    let mut pending = client.send(|id, meta| request.into_line(id, meta), meta, ABANDONED)?;
    if let Some(call) = &limits.call {
        call.set_progress_token(pending.progress_token());
    }
    tokio::select! {
        biased;
        answer = pending.answer() => Ok(answer?),
        (error, reason) = limits.reached() => {
            pending.cancel(reason);
            Err(error)
        }
    }
}

/// Sends a request with rmcp and waits for its answer in a separate task. If one of `limits` is reached or the caller stops
/// waiting, that task cancels the request at the server, which rmcp does not do.
async fn exchange_over_http(
    peer: rmcp::service::Peer<RoleClient>,
    request: ClientRequest,
    options: PeerRequestOptions,
    mut limits: WaitLimits,
) -> Result<String, RequestError> {
    let mut handle = peer.send_request_with_option(request, options).await?;
    if let Some(call) = &limits.call {
        call.set_progress_token(handle.progress_token.clone());
    }
    let (mut answer, waiting) = oneshot::channel();
    tokio::spawn(async move {
        let reason = tokio::select! {
            received = &mut handle.rx => {
                let received = received.unwrap_or(Err(ServiceError::TransportClosed));
                let _ = answer.send(received.map_err(RequestError::Failed));
                return;
            }
            (error, reason) = limits.reached() => {
                // Answer first: a server that reads nothing cannot receive the cancellation, and must not delay the
                // caller.
                let _ = answer.send(Err(error));
                reason
            }
            () = answer.closed() => ABANDONED,
        };
        drop(limits);
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
