//! The MCP client of an upstream server, over either transport: its requests with their ids, the answers to them, and its
//! subscriptions.
//!
//! rmcp's client is not used here: a request passes four of its tasks on the way and back, which costs more than everything
//! else that Lockhouse does for a call; and its typed results drop unknown fields. Results stay JSON text. An API of rmcp that
//! returns results as text, on the caller's task, would make this module unnecessary.

pub mod bounded_list;
mod connection_failure;
mod conversation;
pub mod http;
mod http_error;
pub mod inbound_message;
mod line_transport;
mod line_writer;
mod message_sender;
pub mod response_id_scan;
mod traffic_limits;

use std::fmt;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientNotification, ClientRequest, GetMeta, Implementation, InitializedNotification,
    JsonRpcMessage, NumberOrString, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
    ServerNotification, ServerPeerInfo, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::TxJsonRpcMessage;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use connection_failure::{ConnectionFailure, FailureSignal};
pub use conversation::{
    Handshake, HandshakeError, MessageReader, ServerInput, ServerMessages, converse, shake_hands,
};
pub use http_error::{HttpError, HttpErrorKind};
pub use line_transport::LineTransport;

use crate::answer_error::ResponseError;
use crate::pending_requests::{PendingRequests, Waiting, cancellation};
use message_sender::MessageSender;
use traffic_limits::TrafficLimiter;

/// Maximum number of notifications of a subscription that wait to be read. One more ends the subscription.
const UNREAD_NOTIFICATIONS_MAX: usize = 64;
const SUBSCRIPTION_DROPPED: &str = "the subscription is not needed any more";

type RequestResult = Result<String, ResponseError>;

/// The client of one connection. Clones share the connection.
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

struct ClientInner {
    sender: Arc<dyn MessageSender>,
    traffic: TrafficLimiter,
    /// What both sides said of themselves in the handshake.
    established: OnceLock<Established>,
    pending: PendingRequests,
    /// Cancelled to end the connection.
    closing: CancellationToken,
}

struct Established {
    server: Arc<ServerPeerInfo>,
    /// The name and the capabilities that the client announced.
    client: (Implementation, ClientCapabilities),
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Creates the client of one connection. `traffic` and `pending` belong to the reader of the same connection.
    pub fn new(sender: Arc<dyn MessageSender>, traffic: TrafficLimiter, pending: PendingRequests) -> Self {
        let (established, closing) = (OnceLock::new(), CancellationToken::new());
        Self(Arc::new(ClientInner { sender, traffic, established, pending, closing }))
    }

    /// Returns what the server said of itself; `None` before the handshake is complete.
    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.0.established.get().map(|established| established.server.clone())
    }

    /// Whether the connection uses protocol version 2026-07-28 or a newer one.
    pub fn is_modern(&self) -> bool {
        self.info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
    }

    /// Completes the handshake, in which the client announced `name` and `capabilities`. A server with `initialize` is told
    /// so.
    pub(crate) async fn begin(
        &self,
        server: ServerPeerInfo,
        name: Implementation,
        capabilities: ClientCapabilities,
    ) -> Result<(), ResponseError> {
        let has_initialize = server.protocol_version.has_initialize();
        let _ =
            self.0.established.set(Established { server: Arc::new(server), client: (name, capabilities) });
        if has_initialize {
            self.0.sender.send(initialized_line()?).await?;
        }
        Ok(())
    }

    /// Ends the connection.
    pub fn end(&self) {
        self.0.closing.cancel();
    }

    /// Returns a guard that ends the connection when it is dropped.
    pub fn end_on_drop(&self) -> DropGuard {
        self.closing().drop_guard()
    }

    pub(crate) fn closing(&self) -> CancellationToken {
        self.0.closing.clone()
    }

    pub(crate) fn sender(&self) -> Arc<dyn MessageSender> {
        self.0.sender.clone()
    }

    pub(crate) fn pending(&self) -> &PendingRequests {
        &self.0.pending
    }

    /// Ends the connection because the server exceeded a limit. `message` describes the violation.
    pub(crate) fn fail_for_violation(&self, message: &str) {
        self.0.traffic.fail_for_violation(message);
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.pending.is_closed()
    }

    /// Sends a request. `to_line` gets its id, which is also its progress token, and its metadata, and returns it as a line
    /// (see [`request_line`]); `meta` is its additional metadata. Dropping the returned value cancels the request at the
    /// server with the reason `if_dropped`, unless its answer has arrived.
    pub fn send(
        &self,
        to_line: impl FnOnce(i64, Option<RequestMetaObject>) -> serde_json::Result<Vec<u8>>,
        meta: Option<RequestMetaObject>,
        if_dropped: &'static str,
    ) -> Result<PendingRequest, ResponseError> {
        self.send_with_notifications(to_line, meta, if_dropped, None)
    }

    fn send_with_notifications(
        &self,
        to_line: impl FnOnce(i64, Option<RequestMetaObject>) -> serde_json::Result<Vec<u8>>,
        meta: Option<RequestMetaObject>,
        if_dropped: &'static str,
        notifications: Option<mpsc::Sender<ServerNotification>>,
    ) -> Result<PendingRequest, ResponseError> {
        let (sender, answer) = oneshot::channel();
        let id = self.0.pending.register(Waiting { answer: sender, notifications });
        let id = id.ok_or(ResponseError::Closed)?;
        let mut pending = PendingRequest { id, answer, cancel_reason: None, client: self.clone() };
        self.0.traffic.record_pending(id, Some(pending.progress_token()));
        let line = to_line(id, self.with_client_metadata(meta));
        self.0.sender.send_request(id, line.map_err(|_| ResponseError::Invalid)?)?;
        pending.cancel_reason = Some(if_dropped);
        Ok(pending)
    }

    /// Subscribes to notifications, and waits for the server's acknowledgment.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, ResponseError> {
        let params = SubscriptionsListenRequestParams::new(filter.clone());
        let request = ClientRequest::SubscriptionsListenRequest(SubscriptionsListenRequest::new(params));
        let (sender, mut notifications) = mpsc::channel(UNREAD_NOTIFICATIONS_MAX);
        let line = |id, meta| request_line(request, id, meta);
        let mut pending = self.send_with_notifications(line, None, SUBSCRIPTION_DROPPED, Some(sender))?;
        let first = tokio::select! {
            biased;
            first = notifications.recv() => first,
            answer = pending.answer() => return Err(answer.err().unwrap_or(ResponseError::Invalid)),
        };
        match first {
            Some(ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged))
                if acknowledged.params.notifications.is_subset_of(&filter) =>
            {
                Ok(Subscription { notifications, pending })
            }
            Some(_) => Err(ResponseError::Invalid),
            None => Err(ResponseError::Closed),
        }
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

/// A request that was sent and waits for its answer. Dropping it cancels the request at the server.
#[derive(Debug)]
pub struct PendingRequest {
    id: i64,
    answer: oneshot::Receiver<RequestResult>,
    /// The reason in the cancellation that is sent to the server on drop. `None` if no cancellation is needed, because
    /// the request was not sent or has been answered.
    cancel_reason: Option<&'static str>,
    client: Client,
}

impl PendingRequest {
    /// The token with which the server refers to the request in progress notifications.
    pub fn progress_token(&self) -> ProgressToken {
        ProgressToken(NumberOrString::Number(self.id))
    }

    /// Waits for the answer: the result as JSON text, or the server's error. Cancel-safe.
    pub async fn answer(&mut self) -> RequestResult {
        let answer = (&mut self.answer).await;
        self.cancel_reason = None;
        answer.unwrap_or(Err(ResponseError::Closed))
    }

    /// Cancels the request. `reason` is sent to the server.
    pub fn cancel(mut self, reason: &'static str) {
        self.cancel_reason = Some(reason);
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let shared = &self.client.0;
        if let (true, Some(reason)) = (shared.pending.remove(self.id), self.cancel_reason) {
            let notification = cancellation(&RequestId::Number(self.id), reason);
            shared.sender.cancel_request(self.id, format!("{notification}\n").into_bytes());
        }
    }
}

/// A subscription to notifications of the server. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    notifications: mpsc::Receiver<ServerNotification>,
    pending: PendingRequest,
}

impl Subscription {
    /// Waits for the next notification. Returns `None` if the subscription has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        tokio::select! {
            biased;
            notification = self.notifications.recv() => notification,
            _ = self.pending.answer() => None,
        }
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

/// Returns the notification that the handshake with `initialize` is complete, as one line.
pub(crate) fn initialized_line() -> Result<Vec<u8>, ResponseError> {
    let notification = ClientNotification::InitializedNotification(InitializedNotification::default());
    to_line(&JsonRpcMessage::notification(notification)).map_err(|_| ResponseError::Invalid)
}

/// Serializes a message as one line.
pub(crate) fn to_line(message: &TxJsonRpcMessage<RoleClient>) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
