//! Ids of the requests that an MCP session has under way.
//!
//! rmcp finds the stream of an answer by the id of its request. Of two requests with one id, one would never be answered, and its
//! stream would stay open. So an id that is under way is refused until its answer has been sent or the request was cancelled;
//! whether its client still listens is not looked at, since the request goes on without it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Those of one session. Copies are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestIds(Arc<Mutex<HashSet<RequestId>>>);

/// An id that was taken for a request that is not passed on yet. It is free again if this is dropped before.
#[derive(Debug)]
pub(super) struct TakenId {
    ids: RequestIds,
    id: Option<RequestId>,
}

impl RequestIds {
    /// Takes the id of a request; none if it is under way.
    pub(super) fn take(&self, id: &RequestId) -> Option<TakenId> {
        let is_free = self.locked().insert(id.clone());
        is_free.then(|| TakenId { ids: self.clone(), id: Some(id.clone()) })
    }

    /// The id can be used again.
    pub(super) fn free(&self, id: &RequestId) {
        self.locked().remove(id);
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock()
    }
}

impl TakenId {
    /// The request was passed on: its answer frees the id.
    pub(super) fn pass_on(mut self) {
        self.id = None;
    }
}

impl Drop for TakenId {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.ids.free(id);
        }
    }
}

/// The id of the request that a message cancels.
pub(super) fn cancelled(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.clone(),
        _ => None,
    }
}

/// The id of the request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        _ => None,
    }
}

/// The transport of a session, which frees the ids of requests as their answers are sent.
#[derive(Debug)]
pub(super) struct FreeingTransport<T> {
    inner: T,
    ids: RequestIds,
}

impl<T> FreeingTransport<T> {
    pub(super) fn new(inner: T, ids: RequestIds) -> Self {
        Self { inner, ids }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for FreeingTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let (ids, id) = (self.ids.clone(), answered(&message));
        let sending = self.inner.send(message);
        async move {
            // Not before: another request with this id would get the answer.
            let sent = sending.await;
            if let Some(id) = &id {
                ids.free(id);
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
    fn an_id_is_taken_once_until_it_is_free() {
        let (ids, id) = (RequestIds::default(), RequestId::Number(1));
        ids.take(&id).expect("free").pass_on();
        assert!(ids.take(&id).is_none());
        drop(ids.take(&RequestId::String("1".into())).expect("another id"));
        ids.free(&id);
        drop(ids.take(&id).expect("it was answered"));
        assert!(ids.take(&id).is_some(), "it was never passed on");
    }
}
