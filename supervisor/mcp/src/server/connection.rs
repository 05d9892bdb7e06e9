//! The connection of one AI client: the client's name and capabilities, its requests in flight, and the server's requests to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{ErrorData, InitializeRequestParams, RequestId, ServerNotification, ServerRequest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::client_message::{ClientMessage, ClientNotification};
use super::output::{Closed, Output, notification_text, request_text};
use crate::answer_error::ResponseError;
use crate::pending_requests::{PendingRequests, Waiting, cancellation};

/// The connection of one AI client. Clones are the same connection.
#[derive(Clone)]
pub struct ClientConnection(Arc<ClientConnectionInner>);

struct ClientConnectionInner {
    /// The parameters of `initialize`, with the protocol version that both sides agreed on.
    client: Mutex<Option<Arc<InitializeRequestParams>>>,
    /// Where messages go that belong to no request.
    output: Arc<dyn Output>,
    /// Whether the handshake has ended.
    is_begun: AtomicBool,
    in_flight: Mutex<HashMap<RequestId, CancellationToken>>,
    asked: PendingRequests,
    /// The end of the ids of the server's requests, by which another host knows where an answer belongs.
    id_suffix: Option<String>,
    /// Cancelled when the connection ends, which cancels its requests.
    closing: CancellationToken,
}

impl ClientConnection {
    pub(super) fn new(output: Arc<dyn Output>, closing: CancellationToken) -> Self {
        Self::with_ids(PendingRequests::default(), None, output, closing)
    }

    /// Creates the connection of a client that may answer elsewhere, where the same client has other requests of the server.
    pub(super) fn with_own_ids(
        id_suffix: Option<String>,
        output: Arc<dyn Output>,
        closing: CancellationToken,
    ) -> Self {
        Self::with_ids(PendingRequests::with_random_ids(), id_suffix, output, closing)
    }

    fn with_ids(
        asked: PendingRequests,
        id_suffix: Option<String>,
        output: Arc<dyn Output>,
        closing: CancellationToken,
    ) -> Self {
        Self(Arc::new(ClientConnectionInner {
            client: Mutex::default(),
            output,
            is_begun: AtomicBool::new(false),
            in_flight: Mutex::default(),
            asked,
            id_suffix,
            closing,
        }))
    }

    /// Returns the parameters of `initialize`; `None` if the client has not sent it.
    pub fn client(&self) -> Option<Arc<InitializeRequestParams>> {
        self.0.client.lock().clone()
    }

    pub(super) fn set_client(&self, client: Box<InitializeRequestParams>) {
        *self.0.client.lock() = Some(client.into());
    }

    /// Returns the token that is cancelled when the connection ends.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Returns the channel for messages that belong to no request.
    pub fn channel(&self) -> ClientChannel {
        ClientChannel { connection: self.clone(), output: self.0.output.clone() }
    }

    /// Records that the handshake has ended. Returns whether it is the first time: a client may say it more than once.
    pub(super) fn begin(&self) -> bool {
        self.client().is_some() && !self.0.is_begun.swap(true, Ordering::Relaxed)
    }

    /// Passes an answer to the request of the server with this id.
    pub(super) fn complete(&self, id: &RequestId, answer: Result<String, ErrorData>) {
        if let Some(id) = self.number(id) {
            self.0.asked.complete(&RequestId::Number(id), answer.map_err(ResponseError::Refused));
        }
    }

    /// Whether this connection waits for a message: an answer to one of its requests, or the cancellation of a request in flight.
    pub(super) fn expects(&self, message: &ClientMessage) -> bool {
        match message {
            ClientMessage::Answer(id, _) => self.number(id).is_some_and(|id| self.0.asked.has(id)),
            ClientMessage::Notification(ClientNotification::Cancelled(id)) => {
                self.0.in_flight.lock().contains_key(id)
            }
            ClientMessage::Notification(_) | ClientMessage::Request(_) => true,
        }
    }

    /// Returns the id of a request of the server, as the client gets it.
    fn id(&self, number: i64) -> RequestId {
        match &self.0.id_suffix {
            None => RequestId::Number(number),
            Some(suffix) => RequestId::String(format!("{number}-{suffix}").into()),
        }
    }

    /// Returns the number of a request of the server. `None` if the id is not one of this connection.
    fn number(&self, id: &RequestId) -> Option<i64> {
        match (id, &self.0.id_suffix) {
            (RequestId::Number(number), None) => Some(*number),
            (RequestId::String(id), Some(suffix)) => {
                id.strip_suffix(suffix.as_str())?.strip_suffix('-')?.parse().ok()
            }
            _ => None,
        }
    }

    /// Records a request as in flight. Returns the token that is cancelled if the client cancels it, and the channel for its
    /// messages, which go to `output`.
    ///
    /// # Errors
    /// Another request with this id is in flight.
    pub(super) fn add_request(
        &self,
        id: &RequestId,
        output: Arc<dyn Output>,
    ) -> Result<(CancellationToken, ClientChannel), IdInUse> {
        let cancelled = self.0.closing.child_token();
        match self.0.in_flight.lock().entry(id.clone()) {
            Entry::Occupied(_) => return Err(IdInUse(id.clone())),
            Entry::Vacant(entry) => entry.insert(cancelled.clone()),
        };
        Ok((cancelled, ClientChannel { connection: self.clone(), output }))
    }

    /// Forgets a request in flight. Returns `false` if it was cancelled, and has no answer.
    fn end_request(&self, id: &RequestId, cancelled: &CancellationToken) -> bool {
        let mut in_flight = self.0.in_flight.lock();
        // If it was cancelled, the client may have used its id again.
        let is_answered = !cancelled.is_cancelled();
        if is_answered {
            in_flight.remove(id);
        }
        is_answered
    }

    /// Cancels a request in flight.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut in_flight = self.0.in_flight.lock();
        if let Some(cancelled) = in_flight.remove(id) {
            cancelled.cancel();
        }
    }
}

/// Another request with this id is in flight.
#[derive(Debug)]
pub struct IdInUse(pub RequestId);

/// Why a request of the server has no result.
#[derive(Debug)]
pub enum ServerRequestError {
    /// The client answered with an error.
    Refused(ErrorData),
    /// The client did not answer in time.
    Timeout,
    /// The connection has ended.
    Closed,
}

/// Sends messages to an AI client that belong to one request, or to none. Clones send to the same place.
#[derive(Clone)]
pub struct ClientChannel {
    connection: ClientConnection,
    output: Arc<dyn Output>,
}

impl ClientChannel {
    pub(super) fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    /// Sends the answer to the request of this channel, unless it was cancelled.
    pub(super) async fn answer(
        self,
        id: RequestId,
        cancelled: &CancellationToken,
        answer: Result<String, ErrorData>,
    ) {
        if !self.connection.end_request(&id, cancelled) {
            self.output.abandon();
        } else if self.output.answer(id, answer).await.is_err() {
            tracing::debug!("an answer cannot be written: the AI client has closed its connection");
        }
    }

    /// Sends a notification. Waits while the client does not read.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn notify(&self, notification: ServerNotification) -> Result<(), Closed> {
        self.output.send(notification_text(notification)).await
    }

    /// Sends a request, and waits for the answer: the result as JSON text. If it does not arrive within `limit`, the request
    /// is cancelled.
    ///
    /// # Errors
    /// [`ServerRequestError`]
    pub async fn ask(&self, request: ServerRequest, limit: Duration) -> Result<String, ServerRequestError> {
        let (sender, answer) = oneshot::channel();
        let asked = &self.connection.0.asked;
        let id = asked
            .register(Waiting { answer: sender, notifications: None })
            .ok_or(ServerRequestError::Closed)?;
        let (unanswered, shown) = (Unanswered { asked, id }, self.connection.id(id));
        let asking = async {
            self.output
                .send(request_text(request, shown.clone()))
                .await
                .map_err(|Closed| ServerRequestError::Closed)?;
            match answer.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(ResponseError::Refused(error))) => Err(ServerRequestError::Refused(error)),
                Ok(Err(_)) | Err(_) => Err(ServerRequestError::Closed),
            }
        };
        let answered = tokio::select! {
            answered = tokio::time::timeout(limit, asking) => answered,
            () = self.connection.closing().cancelled() => return Err(ServerRequestError::Closed),
        };
        drop(unanswered);
        match answered {
            Ok(answer) => answer,
            Err(_) => {
                let _ = self.output.send(cancellation(&shown, "nobody answered in time")).await;
                Err(ServerRequestError::Timeout)
            }
        }
    }
}

/// Forgets a request of the server when nobody waits for its answer any more.
struct Unanswered<'a> {
    asked: &'a PendingRequests,
    id: i64,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.asked.remove(self.id);
    }
}
