//! The requests to the other side of a connection that are not answered yet, with those who wait for the answers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{GetMeta, RequestId, ServerNotification};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::answer_error::ResponseError;

/// The ids of requests. They fit into a signed 32-bit integer, since some servers store ids in that type; and 0 is none, since
/// some take it for no id.
const FIRST_ID: i64 = 1;
const LAST_ID: i64 = i32::MAX as i64;

/// Returns the notification that the sender of a request does not need its answer any more, as JSON text.
pub(crate) fn cancellation(id: &RequestId, reason: &str) -> String {
    let parameters = json!({"requestId": id, "reason": reason});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters}).to_string()
}

/// The unanswered requests of one connection. Clones share them.
#[derive(Clone, Debug)]
pub struct PendingRequests(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    next_id: i64,
    /// For each unanswered request, by its id, who waits for the answer. `None` after the connection has ended.
    requests: Option<HashMap<i64, Waiting>>,
}

/// Who waits for the answer to a request.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) answer: oneshot::Sender<Result<String, ResponseError>>,
    /// For a subscription: gets its notifications.
    pub(crate) notifications: Option<mpsc::Sender<ServerNotification>>,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { next_id: FIRST_ID, requests: Some(HashMap::new()) })))
    }
}

impl PendingRequests {
    /// Returns a table whose ids begin at a random one, so that they are no ids of another table: an answer that arrives at the
    /// wrong one answers nothing there.
    pub(crate) fn with_random_ids() -> Self {
        let mut random = [0; 4];
        let requests = Self::default();
        if getrandom::fill(&mut random).is_ok() {
            requests.0.lock().next_id = FIRST_ID + i64::from(u32::from_ne_bytes(random)) % LAST_ID;
        }
        requests
    }

    /// Returns the id of a new request, whose answer goes to `waiting`; `None` if the connection has ended.
    pub(crate) fn register(&self, waiting: Waiting) -> Option<i64> {
        let State { next_id, requests } = &mut *self.0.lock();
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

    /// Removes a request. Returns whether it was unanswered.
    pub(crate) fn remove(&self, id: i64) -> bool {
        self.0.lock().requests.as_mut().and_then(|requests| requests.remove(&id)).is_some()
    }

    /// Whether a request with this id is unanswered.
    pub(crate) fn has(&self, id: i64) -> bool {
        self.0.lock().requests.as_ref().is_some_and(|requests| requests.contains_key(&id))
    }

    /// Passes an answer to the request with this id. Drops it if that request was cancelled.
    pub fn complete(&self, id: &RequestId, answer: Result<String, ResponseError>) {
        let RequestId::Number(id) = id else { return };
        let waiting = self.0.lock().requests.as_mut().and_then(|requests| requests.remove(id));
        if let Some(waiting) = waiting {
            let _ = waiting.answer.send(answer);
        }
    }

    /// Passes a notification to the subscription that it belongs to. Returns it if it belongs to none. A subscription whose
    /// notifications are not read ends.
    pub(crate) fn deliver(&self, notification: ServerNotification) -> Option<ServerNotification> {
        let Some(RequestId::Number(id)) = notification.get_meta().subscription_id() else {
            return Some(notification);
        };
        let mut state = self.0.lock();
        let waiting = state.requests.as_mut().and_then(|requests| requests.get_mut(&id));
        if let Some(waiting) = waiting
            && let Some(sender) = &waiting.notifications
            && sender.try_send(notification).is_err()
        {
            waiting.notifications = None;
        }
        None
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.lock().requests.is_none()
    }

    /// Fails all requests without an answer, because the connection has ended. Later requests fail, too.
    pub fn close(&self) {
        drop(self.0.lock().requests.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(requests: &PendingRequests) -> (i64, oneshot::Receiver<Result<String, ResponseError>>) {
        let (answer, received) = oneshot::channel();
        (requests.register(Waiting { answer, notifications: None }).expect("open"), received)
    }

    #[test]
    fn an_answer_to_another_connection_answers_nothing_here() {
        let tables: Vec<PendingRequests> = (0..64).map(|_| PendingRequests::with_random_ids()).collect();
        let mut registered: Vec<_> = tables.iter().map(register).collect();
        let (ids, first) = (registered.iter().map(|(id, _)| *id).collect::<Vec<_>>(), registered[0].0);
        assert!(ids.iter().all(|id| (FIRST_ID..=LAST_ID).contains(id)), "{ids:?}");
        for table in &tables {
            table.complete(&RequestId::Number(first), Ok("yes".to_owned()));
        }
        let answered: Vec<bool> =
            registered.iter_mut().map(|(_, answer)| answer.try_recv().is_ok()).collect();
        assert_eq!(answered.iter().filter(|is_answered| **is_answered).count(), 1, "{ids:?}");
        assert!(answered[0], "control");
    }

    #[test]
    fn ids_begin_again_after_the_last_one() {
        let requests = PendingRequests::default();
        requests.0.lock().next_id = LAST_ID;
        let (last, _last) = register(&requests);
        let (first, _first) = register(&requests);
        assert_eq!((last, first), (LAST_ID, FIRST_ID));
    }
}
