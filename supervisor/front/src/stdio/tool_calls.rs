//! The tool calls of the AI client on standard input: each is one task, from its request to its written answer.
//!
//! In rmcp's service loop, a request crosses two tasks and three queues, which takes a fifth of the supervisor's CPU time
//! for a run. rmcp's loop handles all other messages, and rmcp's [`Service`] still checks and answers the calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
    RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext, RxJsonRpcMessage, Service, TxJsonRpcMessage};
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use super::line_writer::LineWriter;
use crate::direct::raw_results::RawResult;

/// A `tools/call` request as it was read.
pub(super) struct ToolCall {
    pub(super) id: RequestId,
    pub(super) params: CallToolRequestParams,
    pub(super) meta: Option<RequestMetaObject>,
}

impl ToolCall {
    /// Converts the call to the message that rmcp expects, with the metadata in the extensions.
    pub(super) fn into_message(self) -> RxJsonRpcMessage<RoleServer> {
        let mut request = CallToolRequest::new(self.params);
        if let Some(meta) = self.meta {
            request.extensions.insert(meta);
        }
        JsonRpcMessage::request(ClientRequest::CallToolRequest(request), self.id)
    }
}

/// The tool calls in flight of one AI client, which `service` serves.
pub(super) struct ToolCalls<S> {
    service: S,
    /// The connection, which calls may use to reach the AI client. Empty until the MCP handshake is complete.
    peer: OnceLock<Peer<RoleServer>>,
    in_flight: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Cancels all calls.
    closing: CancellationToken,
}

impl<S: Service<RoleServer>> ToolCalls<S> {
    pub(super) fn new(service: S, closing: CancellationToken) -> Self {
        Self { service, peer: OnceLock::new(), in_flight: Mutex::default(), closing }
    }

    /// From now on, calls are served here, because the MCP handshake is complete.
    pub(super) fn begin(&self, peer: Peer<RoleServer>) {
        let _ = self.peer.set(peer);
    }

    /// Starts a call, whose answer is written to `writer`. Returns the call if rmcp must serve it: before the handshake is
    /// complete, or if the request names a protocol version of its own.
    pub(super) fn start<W>(
        self: &Arc<Self>,
        call: Box<ToolCall>,
        writer: &LineWriter<W>,
    ) -> Result<(), Box<ToolCall>>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let names_version = call.meta.as_ref().is_some_and(|meta| meta.protocol_version().is_some());
        let Some(peer) = self.peer.get().filter(|_| !names_version) else { return Err(call) };
        let ToolCall { id, params, meta } = *call;
        let mut context = RequestContext::new(id.clone(), peer.clone());
        (context.ct, context.meta) = (self.closing.child_token(), meta.unwrap_or_default());
        let raw_result = RawResult::default();
        context.extensions.insert(raw_result.clone());
        self.in_flight().insert(id.clone(), context.ct.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (calls, writer) = (self.clone(), writer.clone());
        tokio::spawn(async move {
            let result = calls.service.handle_request(request, context).await;
            if calls.in_flight().remove(&id).is_none() {
                // A cancelled call has no answer.
                return;
            }
            let written = match (result, raw_result.take()) {
                (Ok(_), Some(raw)) => writer.write_result(&id, raw).await,
                (Ok(result), None) => {
                    writer.write(&TxJsonRpcMessage::<RoleServer>::response(result, id)).await
                }
                (Err(error), _) => {
                    writer.write(&TxJsonRpcMessage::<RoleServer>::error(error, Some(id))).await
                }
            };
            if let Err(error) = written {
                tracing::error!("an answer cannot be written: {error}");
            }
        });
        Ok(())
    }

    /// Cancels the call that a notification names. Returns `false` if the message is no such notification, or if no call
    /// of that name is in flight here.
    pub(super) fn cancel(&self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        let JsonRpcMessage::Notification(notification) = message else { return false };
        let ClientNotification::CancelledNotification(cancelled) = &notification.notification else {
            return false;
        };
        let id = cancelled.params.request_id.as_ref();
        let call = id.and_then(|id| self.in_flight().remove(id));
        call.inspect(CancellationToken::cancel).is_some()
    }

    /// Returns the number of calls in flight.
    #[cfg(test)]
    pub(super) fn count_in_flight(&self) -> usize {
        self.in_flight().len()
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
