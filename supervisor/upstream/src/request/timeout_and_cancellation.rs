//! Waits for the answer to an MCP request until the timeout, and sends `notifications/cancelled` if the time is over or
//! the caller stops waiting.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomResult, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::RequestError;
use crate::ai_client::PausableTimer;
use crate::http;
use crate::in_flight_calls::CallRegistration;

/// How long sending a cancellation to a server may take. No caller waits for it.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout of a call to an upstream server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimeout {
    pub(crate) limit: Duration,
    /// Whether the timeout restarts with each progress notification of the server.
    pub(crate) restarts_on_progress: bool,
}

/// Sends a request and waits for its answer in a separate task. If the caller stops waiting, that task cancels the
/// request at the server, which rmcp does not do.
pub(super) async fn exchange(
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
