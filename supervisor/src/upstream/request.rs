//! One request to a server: sent, answered or given up in time.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomResult, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::oneshot;

use super::http;

/// How long telling a server that a request is cancelled may take. Nobody waits for it.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends one request, whose result comes back as its JSON text. rmcp forgets a request that nobody waits for without telling the
/// server, so a task of its own stays with it to the end.
pub(super) async fn send(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    limit: Duration,
) -> Result<String, ServiceError> {
    let mut handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let (mut answer, waiting) = oneshot::channel();
    tokio::spawn(async move {
        let reason = tokio::select! {
            received = &mut handle.rx => {
                let _ = answer.send(received.unwrap_or(Err(ServiceError::TransportClosed)));
                return;
            }
            () = tokio::time::sleep(limit) => {
                // First of all: a server that reads nothing cannot be told, and must hold nobody up.
                let _ = answer.send(Err(ServiceError::Timeout { timeout: limit }));
                "timeout"
            }
            () = answer.closed() => "the execution ended",
        };
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, handle.cancel(Some(reason.into()))).await;
    });
    match waiting.await.unwrap_or(Err(ServiceError::TransportClosed))? {
        ServerResult::CustomResult(CustomResult(Value::String(raw))) => Ok(raw),
        ServerResult::ListToolsResult(list) => http::raw_list(list).ok_or(ServiceError::UnexpectedResponse),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}
