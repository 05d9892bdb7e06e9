//! Ids of the requests in flight in an MCP session.
//!
//! rmcp finds the stream for an answer by the id of the request. If two requests had the same id, one would never be
//! answered and its stream would stay open. A request with the id of a request in flight is therefore refused. The id
//! becomes free when the earlier request is answered or cancelled, but not when its client disconnects, because the
//! request then continues.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// The ids of the requests in flight in one MCP session. Clones share the set.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestIds(Arc<Mutex<HashSet<RequestId>>>);

/// An id that is reserved for a request. Dropping this value releases the id, unless [`confirm`](Self::confirm) was
/// called.
#[derive(Debug)]
pub(super) struct ReservedId {
    ids: RequestIds,
    id: Option<RequestId>,
}

impl RequestIds {
    /// Reserves the id of a request. Returns `None` if another request with this id is in flight.
    pub(super) fn reserve(&self, id: &RequestId) -> Option<ReservedId> {
        let is_free = self.locked().insert(id.clone());
        is_free.then(|| ReservedId { ids: self.clone(), id: Some(id.clone()) })
    }

    /// Releases the id of a request, so that a new request may use it.
    pub(super) fn release(&self, id: &RequestId) {
        self.locked().remove(id);
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock()
    }
}

impl ReservedId {
    /// Keeps the id reserved until the request is answered or cancelled.
    pub(super) fn confirm(mut self) {
        self.id = None;
    }
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.ids.release(id);
        }
    }
}

/// Returns the id of the request that a message cancels. `None` for any other message.
pub(super) fn cancelled_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.clone(),
        _ => None,
    }
}

/// Returns the id of the request that a message answers. `None` for any other message.
fn answered_id(message: &ServerJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        _ => None,
    }
}

/// The transport of an MCP session. It releases the id of a request when the answer is sent, so that the
/// client may use the id again.
#[derive(Debug)]
pub(super) struct IdTrackingTransport<T> {
    inner: T,
    ids: RequestIds,
}

impl<T> IdTrackingTransport<T> {
    pub(super) fn new(inner: T, ids: RequestIds) -> Self {
        Self { inner, ids }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for IdTrackingTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let (ids, id) = (self.ids.clone(), answered_id(&message));
        let sending = self.inner.send(message);
        async move {
            // Released after sending: otherwise a new request with this id could get this answer.
            let sent = sending.await;
            if let Some(id) = &id {
                ids.release(id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_reserved_once_until_released() {
        let (ids, id) = (RequestIds::default(), RequestId::Number(1));
        ids.reserve(&id).expect("free").confirm();
        assert!(ids.reserve(&id).is_none());
        drop(ids.reserve(&RequestId::String("1".into())).expect("another id"));
        ids.release(&id);
        drop(ids.reserve(&id).expect("it was answered"));
        assert!(ids.reserve(&id).is_some(), "it was never passed on");
    }
}
