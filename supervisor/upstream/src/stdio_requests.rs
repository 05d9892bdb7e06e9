//! Sends requests to an upstream server over its standard input, and completes them with the answers that the transport
//! reads.
//!
//! A request that is sent through rmcp passes four tasks on its way and back, which costs more than everything else
//! that Lockhouse does for a call. The requests of this module bypass rmcp and have ids that rmcp does not use.
//! Requests and notifications of the server still go to rmcp.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    CustomResult, JsonRpcMessage, NumberOrString, ProgressToken, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::inbound_message::RxMessage;
use super::line_writer::LineWriter;
use super::outgoing_request::OutgoingRequest;
use super::traffic_limits::TrafficLimiter;

/// The first id of the requests that bypass rmcp. rmcp counts its own requests from 0. All ids fit into a signed 32-bit
/// integer, since some servers store ids in that type.
const FIRST_ID: i64 = 1_000_000_000;
const LAST_ID: i64 = i32::MAX as i64;

type Answer = Result<String, ServiceError>;

/// Sends requests to one process. Clones send to the same process.
#[derive(Clone, Debug)]
pub(super) struct StdioRequests(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writer: LineWriter,
    traffic: TrafficLimiter,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    next_id: i64,
    /// For each unanswered request, by its id, the sender through which its answer is delivered to the task that waits
    /// for it. `None` after the connection has ended.
    answers: Option<HashMap<i64, oneshot::Sender<Answer>>>,
}

impl StdioRequests {
    /// Creates the sender of requests to one process. `writer` and `traffic` belong to the transport of the same
    /// connection.
    pub(super) fn new(writer: LineWriter, traffic: TrafficLimiter) -> Self {
        let pending = Pending { next_id: FIRST_ID, answers: Some(HashMap::new()) }.into();
        Self(Arc::new(Shared { writer, traffic, pending }))
    }

    /// Sends a request. `meta` is the additional metadata of the request. Dropping the returned value cancels the
    /// request at the server with the reason `if_dropped`, unless its answer has arrived.
    pub(super) fn send(
        &self,
        peer: &Peer<RoleClient>,
        request: OutgoingRequest<'_>,
        meta: Option<RequestMetaObject>,
        if_dropped: &'static str,
    ) -> Result<PendingRequest, ServiceError> {
        let (sender, answer) = oneshot::channel();
        let id = self.0.register(sender).ok_or(ServiceError::TransportClosed)?;
        let mut pending = PendingRequest { id, answer, cancel_reason: None, requests: self.clone() };
        self.0.traffic.record_pending(id, Some(pending.progress_token()));
        let line = request.into_line(id, with_client_metadata(peer, meta));
        self.0.write(line.map_err(|_| ServiceError::UnexpectedResponse)?)?;
        pending.cancel_reason = Some(if_dropped);
        Ok(pending)
    }

    /// Passes an answer of the server to the request that it answers, or drops the answer if that request was
    /// cancelled. Returns the message if it answers no request of this sender, so that rmcp processes it.
    pub(super) fn complete(&self, message: RxMessage) -> Option<RxMessage> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(RequestId::Number(id @ FIRST_ID..)) = id else { return Some(message) };
        let receiver = self.0.pending.lock().answers.as_mut().and_then(|answers| answers.remove(id));
        // The answer to a cancelled request has no receiver.
        if let Some(receiver) = receiver {
            let _ = receiver.send(match message {
                JsonRpcMessage::Response(response) => text_of(response.result),
                JsonRpcMessage::Error(error) => Err(ServiceError::McpError(error.error)),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return None,
            });
        }
        None
    }

    /// Fails all requests without an answer, because the connection has ended. Later requests fail, too.
    pub(super) fn close(&self) {
        drop(self.0.pending.lock().answers.take());
    }
}

impl Shared {
    /// Returns the id of a new request, whose answer goes to `receiver`; `None` if the connection has ended.
    fn register(&self, receiver: oneshot::Sender<Answer>) -> Option<i64> {
        let mut pending = self.pending.lock();
        let id = pending.next_id;
        pending.next_id = if id == LAST_ID { FIRST_ID } else { id + 1 };
        pending.answers.as_mut()?.insert(id, receiver);
        Some(id)
    }

    fn write(&self, line: Vec<u8>) -> Result<(), ServiceError> {
        self.writer.start_write(line).map_err(|_| ServiceError::TransportClosed)
    }
}

/// A request that was sent and waits for its answer. Dropping it cancels the request at the server.
#[derive(Debug)]
pub(super) struct PendingRequest {
    id: i64,
    answer: oneshot::Receiver<Answer>,
    /// The reason in the cancellation that is sent to the server on drop. `None` if no cancellation is needed, because
    /// the request was not sent or has been answered.
    cancel_reason: Option<&'static str>,
    requests: StdioRequests,
}

impl PendingRequest {
    /// The token with which the server refers to the request in progress notifications.
    pub(super) fn progress_token(&self) -> ProgressToken {
        ProgressToken(NumberOrString::Number(self.id))
    }

    /// Waits for the answer: the result as JSON text, or the server's error. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Answer {
        let answer = (&mut self.answer).await;
        self.cancel_reason = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }

    /// Cancels the request. `reason` is sent to the server.
    pub(super) fn cancel(mut self, reason: &'static str) {
        self.cancel_reason = Some(reason);
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let shared = &self.requests.0;
        let removed = shared.pending.lock().answers.as_mut().and_then(|answers| answers.remove(&self.id));
        if let (Some(_), Some(reason)) = (removed, self.cancel_reason) {
            let parameters = json!({"requestId": self.id, "reason": reason});
            let notification =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters});
            let _ = shared.write(format!("{notification}\n").into_bytes());
        }
    }
}

/// Returns `meta` with the metadata that rmcp adds to requests from protocol version 2026-07-28 on: the protocol
/// version, and the name and version of Lockhouse. `meta` already contains the capabilities of the AI client.
fn with_client_metadata(
    peer: &Peer<RoleClient>,
    meta: Option<RequestMetaObject>,
) -> Option<RequestMetaObject> {
    let Some(info) = peer.peer_info().filter(|info| !info.protocol_version.has_initialize()) else {
        return meta;
    };
    let mut meta = meta.unwrap_or_default();
    meta.set_protocol_version(info.protocol_version.clone());
    meta.set_client_info(super::mcp_client_handler::implementation());
    Some(meta)
}

fn text_of(result: ServerResult) -> Answer {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(raw))) => Ok(raw),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}
