//! The MCP client of an upstream server over standard input and output: its requests with their ids, the answers to them,
//! and its subscriptions.
//!
//! rmcp's client is not used here: a request passes four of its tasks on the way and back, which costs more than everything
//! else that Lockhouse does for a call; and its typed results drop unknown fields. Results stay JSON text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientNotification, ClientRequest, CustomResult, GetMeta, Implementation,
    InitializedNotification, JsonRpcMessage, NumberOrString, ProgressToken, RequestId, RequestMetaObject,
    ServerNotification, ServerPeerInfo, ServerResult, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::{ServiceError, TxJsonRpcMessage};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::inbound_message::RxMessage;
use crate::line_writer::LineWriter;
use crate::traffic_limits::TrafficLimiter;

/// The ids of requests. They fit into a signed 32-bit integer, since some servers store ids in that type; and 0 is none, since
/// some take it for no id.
const FIRST_ID: i64 = 1;
const LAST_ID: i64 = i32::MAX as i64;
/// Maximum number of notifications of a subscription that wait to be read. One more ends the subscription.
const UNREAD_NOTIFICATIONS_MAX: usize = 64;
const SUBSCRIPTION_DROPPED: &str = "the subscription is not needed any more";

type Answer = Result<String, ServiceError>;

/// The client of one process. Clones share the connection.
#[derive(Clone, Debug)]
pub struct LineClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writer: LineWriter,
    traffic: TrafficLimiter,
    /// What both sides said of themselves in the handshake.
    established: OnceLock<Established>,
    pending: Mutex<Pending>,
    /// Cancelled to end the connection.
    closing: CancellationToken,
}

#[derive(Debug)]
struct Established {
    server: Arc<ServerPeerInfo>,
    /// The name and the capabilities that the client announced.
    client: (Implementation, ClientCapabilities),
}

#[derive(Debug)]
struct Pending {
    next_id: i64,
    /// For each unanswered request, by its id, who waits for the answer. `None` after the connection has ended.
    requests: Option<HashMap<i64, Waiting>>,
}

/// Who waits for the answer to a request.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Answer>,
    /// For a subscription: gets its notifications.
    notifications: Option<mpsc::Sender<ServerNotification>>,
}

impl LineClient {
    /// Creates the client of one process. `writer` and `traffic` belong to the transport of the same connection.
    pub fn new(writer: LineWriter, traffic: TrafficLimiter) -> Self {
        let pending = Pending { next_id: FIRST_ID, requests: Some(HashMap::new()) }.into();
        let (established, closing) = (OnceLock::new(), CancellationToken::new());
        Self(Arc::new(Shared { writer, traffic, established, pending, closing }))
    }

    /// Returns what the server said of itself; `None` before the handshake is complete.
    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.0.established.get().map(|established| established.server.clone())
    }

    /// Completes the handshake, in which the client announced `name` and `capabilities`. A server with `initialize` is told
    /// so.
    pub fn begin(
        &self,
        server: ServerPeerInfo,
        name: Implementation,
        capabilities: ClientCapabilities,
    ) -> Result<(), ServiceError> {
        let has_initialize = server.protocol_version.has_initialize();
        let _ =
            self.0.established.set(Established { server: Arc::new(server), client: (name, capabilities) });
        if has_initialize {
            let initialized = InitializedNotification::default();
            let notification = ClientNotification::InitializedNotification(initialized);
            let line = to_line(&JsonRpcMessage::notification(notification));
            self.0.write(line.map_err(|_| ServiceError::UnexpectedResponse)?)?;
        }
        Ok(())
    }

    /// Ends the connection, which closes the standard input of the process.
    pub fn end(&self) {
        self.0.closing.cancel();
    }

    pub fn closing(&self) -> CancellationToken {
        self.0.closing.clone()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.pending.lock().requests.is_none()
    }

    /// Sends a request. `to_line` gets its id, which is also its progress token, and its metadata, and returns it as a line
    /// (see [`request_line`]); `meta` is its additional metadata. Dropping the returned value cancels the request at the
    /// server with the reason `if_dropped`, unless its answer has arrived.
    pub fn send(
        &self,
        to_line: impl FnOnce(i64, Option<RequestMetaObject>) -> serde_json::Result<Vec<u8>>,
        meta: Option<RequestMetaObject>,
        if_dropped: &'static str,
    ) -> Result<PendingRequest, ServiceError> {
        self.send_with_notifications(to_line, meta, if_dropped, None)
    }

    fn send_with_notifications(
        &self,
        to_line: impl FnOnce(i64, Option<RequestMetaObject>) -> serde_json::Result<Vec<u8>>,
        meta: Option<RequestMetaObject>,
        if_dropped: &'static str,
        notifications: Option<mpsc::Sender<ServerNotification>>,
    ) -> Result<PendingRequest, ServiceError> {
        let (sender, answer) = oneshot::channel();
        let id = self.0.register(Waiting { answer: sender, notifications });
        let id = id.ok_or(ServiceError::TransportClosed)?;
        let mut pending = PendingRequest { id, answer, cancel_reason: None, client: self.clone() };
        self.0.traffic.record_pending(id, Some(pending.progress_token()));
        let line = to_line(id, self.with_client_metadata(meta));
        self.0.write(line.map_err(|_| ServiceError::UnexpectedResponse)?)?;
        pending.cancel_reason = Some(if_dropped);
        Ok(pending)
    }

    /// Subscribes to notifications, and waits for the server's acknowledgment.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<LineSubscription, ServiceError> {
        let params = SubscriptionsListenRequestParams::new(filter.clone());
        let request = ClientRequest::SubscriptionsListenRequest(SubscriptionsListenRequest::new(params));
        let (sender, mut notifications) = mpsc::channel(UNREAD_NOTIFICATIONS_MAX);
        let line = |id, meta| request_line(request, id, meta);
        let mut pending = self.send_with_notifications(line, None, SUBSCRIPTION_DROPPED, Some(sender))?;
        let first = tokio::select! {
            biased;
            first = notifications.recv() => first,
            answer = pending.answer() => return Err(answer.err().unwrap_or(ServiceError::UnexpectedResponse)),
        };
        match first {
            Some(ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged))
                if acknowledged.params.notifications.is_subset_of(&filter) =>
            {
                Ok(LineSubscription { notifications, pending })
            }
            Some(_) => Err(ServiceError::UnexpectedResponse),
            None => Err(ServiceError::TransportClosed),
        }
    }

    /// Passes an answer of the server to the request that it answers, or drops the answer if that request was
    /// cancelled. Returns the message if it is no answer.
    pub fn complete(&self, message: RxMessage) -> Option<RxMessage> {
        let (id, answer) = match message {
            JsonRpcMessage::Response(response) => (Some(response.id), text_of(response.result)),
            JsonRpcMessage::Error(error) => (error.id, Err(ServiceError::McpError(error.error))),
            other => return Some(other),
        };
        let Some(RequestId::Number(id)) = id else { return None };
        let mut pending = self.0.pending.lock();
        if let Some(waiting) = pending.requests.as_mut().and_then(|requests| requests.remove(&id)) {
            let _ = waiting.answer.send(answer);
        }
        None
    }

    /// Passes a notification to the subscription that it belongs to. Returns it if it belongs to none. A subscription whose
    /// notifications are not read ends.
    pub fn deliver(&self, notification: ServerNotification) -> Option<ServerNotification> {
        let Some(RequestId::Number(id)) = notification.get_meta().subscription_id() else {
            return Some(notification);
        };
        let mut pending = self.0.pending.lock();
        let waiting = pending.requests.as_mut().and_then(|requests| requests.get_mut(&id));
        if let Some(waiting) = waiting
            && let Some(sender) = &waiting.notifications
            && sender.try_send(notification).is_err()
        {
            waiting.notifications = None;
        }
        None
    }

    /// Fails all requests without an answer, because the connection has ended. Later requests fail, too.
    pub fn close(&self) {
        drop(self.0.pending.lock().requests.take());
    }

    /// Returns `meta` with the metadata that requests have from protocol version 2026-07-28 on: the protocol version, and the
    /// name and the capabilities of the client, unless `meta` has others.
    fn with_client_metadata(&self, meta: Option<RequestMetaObject>) -> Option<RequestMetaObject> {
        let Some(Established { server, client }) = self.0.established.get() else { return meta };
        let version = &server.protocol_version;
        if version.has_initialize() {
            return meta;
        }
        let (name, capabilities) = client.clone();
        let mut all = RequestMetaObject::with_client_context(version.clone(), name, capabilities);
        all.extend(meta.unwrap_or_default());
        Some(all)
    }
}

impl Shared {
    /// Returns the id of a new request, whose answer goes to `waiting`; `None` if the connection has ended.
    fn register(&self, waiting: Waiting) -> Option<i64> {
        let Pending { next_id, requests } = &mut *self.pending.lock();
        let requests = requests.as_mut()?;
        loop {
            let id = *next_id;
            *next_id = if id == LAST_ID { FIRST_ID } else { id + 1 };
            // A subscription may have had the id since the ids began again.
            if let Entry::Vacant(entry) = requests.entry(id) {
                entry.insert(waiting);
                return Some(id);
            }
        }
    }

    fn write(&self, line: Vec<u8>) -> Result<(), ServiceError> {
        self.writer.start_write(line).map_err(|_| ServiceError::TransportClosed)
    }
}

/// A request that was sent and waits for its answer. Dropping it cancels the request at the server.
#[derive(Debug)]
pub struct PendingRequest {
    id: i64,
    answer: oneshot::Receiver<Answer>,
    /// The reason in the cancellation that is sent to the server on drop. `None` if no cancellation is needed, because
    /// the request was not sent or has been answered.
    cancel_reason: Option<&'static str>,
    client: LineClient,
}

impl PendingRequest {
    /// The token with which the server refers to the request in progress notifications.
    pub fn progress_token(&self) -> ProgressToken {
        ProgressToken(NumberOrString::Number(self.id))
    }

    /// Waits for the answer: the result as JSON text, or the server's error. Cancel-safe.
    pub async fn answer(&mut self) -> Answer {
        let answer = (&mut self.answer).await;
        self.cancel_reason = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }

    /// Cancels the request. `reason` is sent to the server.
    pub fn cancel(mut self, reason: &'static str) {
        self.cancel_reason = Some(reason);
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let shared = &self.client.0;
        let removed = shared.pending.lock().requests.as_mut().and_then(|requests| requests.remove(&self.id));
        if let (Some(_), Some(reason)) = (removed, self.cancel_reason) {
            let parameters = json!({"requestId": self.id, "reason": reason});
            let notification =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters});
            let _ = shared.write(format!("{notification}\n").into_bytes());
        }
    }
}

/// A subscription to notifications of the server. Dropping it ends the subscription.
#[derive(Debug)]
pub struct LineSubscription {
    notifications: mpsc::Receiver<ServerNotification>,
    pending: PendingRequest,
}

impl LineSubscription {
    /// Waits for the next notification. Returns `None` if the subscription has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        tokio::select! {
            biased;
            notification = self.notifications.recv() => notification,
            _ = self.pending.answer() => None,
        }
    }
}

fn text_of(result: ServerResult) -> Answer {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(raw))) => Ok(raw),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Serializes a request as one line. `id` is its id and its progress token, `meta` its other metadata.
///
/// # Errors
/// Errors of serde_json.
pub fn request_line(
    mut request: ClientRequest,
    id: i64,
    meta: Option<RequestMetaObject>,
) -> serde_json::Result<Vec<u8>> {
    let all = request.get_meta_mut();
    all.extend(meta.unwrap_or_default());
    all.set_progress_token(ProgressToken(NumberOrString::Number(id)));
    to_line(&JsonRpcMessage::request(request, RequestId::Number(id)))
}

/// Serializes a message as one line.
pub(crate) fn to_line(message: &TxJsonRpcMessage<RoleClient>) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
