//! The requests of a front that the engine in another process has not answered yet. Decides, without I/O, what happens
//! to each of them when the connection is lost, when there is a new one, and when there is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_messages::{ExchangeId, Repetition};
use tokio::sync::OwnedSemaphorePermit;

use crate::assembler::Parts;
use crate::outbox::OutboxSender;

/// Maximum number of requests that are open at one time. Further requests are refused.
const OPEN_MAX: usize = 1_024;

/// How often a request is sent to an engine that ends each time. The request could be the reason for the end.
const SENT_MAX: u32 = 2;

/// The connection to the engine's process, and the requests that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    link: Link,
    open: BTreeMap<ExchangeId, OpenRequest>,
}

#[derive(Debug, Default)]
enum Link {
    #[default]
    Down,
    Up(OutboxSender),
    /// The engine's process is about to end: open requests may still end, and new ones wait for the next connection.
    Draining(OutboxSender),
}

#[derive(Debug)]
struct OpenRequest {
    /// The request, with the memory that is reserved for it. `None` once a request that is never repeated has begun.
    stored: Option<StoredRequest>,
    repetition: Repetition,
    /// How often the request was sent.
    sent: u32,
    state: RequestState,
}

/// A request that may have to be sent again.
#[derive(Debug)]
pub(super) struct StoredRequest {
    pub(super) parts: Parts,
    pub(super) memory: Option<Arc<OwnedSemaphorePermit>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Waiting,
    Sent,
    /// The engine began the request.
    Begun,
}

impl OpenRequests {
    /// Opens a request: sends it, or keeps it until there is a connection. Returns false if too many are open.
    pub(super) fn open(&mut self, id: ExchangeId, request: StoredRequest, repetition: Repetition) -> bool {
        if self.open.len() >= OPEN_MAX {
            return false;
        }
        let stored = Some(request);
        let mut request = OpenRequest { stored, repetition, sent: 0, state: RequestState::Waiting };
        if let Link::Up(sender) = &self.link {
            request.send(id, sender);
        }
        self.open.insert(id, request);
        true
    }

    /// Sends a message about an open request, if the engine knows the request.
    pub(super) fn send_about(&self, id: ExchangeId, parts: Parts) {
        if let Link::Up(sender) | Link::Draining(sender) = &self.link
            && self.open.get(&id).is_some_and(|request| request.state != RequestState::Waiting)
        {
            sender.send_urgent(id, parts);
        }
    }

    /// Sends a message that is about no request, if there is a connection.
    pub(super) fn send(&self, parts: Parts) {
        if let Link::Up(sender) | Link::Draining(sender) = &self.link {
            sender.send_urgent(ExchangeId(0), parts);
        }
    }

    /// Records that the engine began a request.
    pub(super) fn begun(&mut self, id: ExchangeId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.state = RequestState::Begun;
            if request.repetition == Repetition::Never {
                request.stored = None;
            }
        }
    }

    pub(super) fn remove(&mut self, id: ExchangeId) {
        self.open.remove(&id);
    }

    /// Uses a new connection: sends all requests that wait. Returns those that an earlier process followed for the front,
    /// and that may have missed changes.
    pub(super) fn connected(&mut self, sender: OutboxSender) -> Vec<ExchangeId> {
        for (id, request) in &mut self.open {
            request.send(*id, &sender);
        }
        self.link = Link::Up(sender);
        let follows = |(_, request): &(&ExchangeId, &OpenRequest)| request.repetition == Repetition::Always;
        self.open.iter().filter(follows).map(|(id, _)| *id).collect()
    }

    /// Sends no new request on the current connection.
    pub(super) fn draining(&mut self) {
        self.link = match std::mem::take(&mut self.link) {
            Link::Up(sender) | Link::Draining(sender) => Link::Draining(sender),
            Link::Down => Link::Down,
        };
    }

    /// Records that the connection is lost. Returns the requests that the engine may have carried out: they must be
    /// answered with an error, and are no longer open. The others wait for the next connection.
    pub(super) fn disconnected(&mut self) -> Vec<ExchangeId> {
        self.link = Link::Down;
        let lost = self.open.extract_if(.., |_, request| request.is_lost());
        let lost = lost.map(|(id, _)| id).collect();
        for request in self.open.values_mut() {
            request.state = RequestState::Waiting;
        }
        lost
    }

    /// Whether a request waits for a connection and its caller for an answer.
    pub(super) fn has_waiting(&self) -> bool {
        let waits = |request: &OpenRequest| {
            request.state == RequestState::Waiting && request.repetition != Repetition::Always
        };
        self.open.values().any(waits)
    }

    /// Gives up the requests that wait for a connection. Returns them: they must be answered with an error.
    pub(super) fn give_up(&mut self) -> Vec<ExchangeId> {
        let waiting = self.open.extract_if(.., |_, request| request.repetition != Repetition::Always);
        waiting.map(|(id, _)| id).collect()
    }
}

impl OpenRequest {
    fn send(&mut self, id: ExchangeId, sender: &OutboxSender) {
        self.state = RequestState::Sent;
        self.sent += 1;
        if let Some(stored) = &self.stored {
            sender.send_reserved(id, stored.parts.clone(), stored.memory.clone());
        }
    }

    /// Whether the request cannot be sent again after the connection was lost.
    fn is_lost(&self) -> bool {
        match self.repetition {
            Repetition::Never => self.state == RequestState::Begun || self.sent >= SENT_MAX,
            Repetition::Once => self.sent >= SENT_MAX,
            Repetition::Always => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::outbox;

    const IDS: [(ExchangeId, Repetition); 3] = [
        (ExchangeId(1), Repetition::Never),
        (ExchangeId(2), Repetition::Once),
        (ExchangeId(3), Repetition::Always),
    ];

    fn stored(content: u8) -> StoredRequest {
        StoredRequest { parts: vec![vec![content]], memory: None }
    }

    /// Returns the one byte of each message that was sent.
    async fn sent(sender: OutboxSender, writer: crate::outbox::OutboxWriter) -> Vec<u8> {
        sender.close();
        let mut sent = Vec::new();
        writer.write_to(&mut sent).await.expect("written");
        sent.chunks(crate::frame::HEADER_BYTES + 1).filter_map(|frame| frame.last().copied()).collect()
    }

    fn all_open(requests: &mut OpenRequests) {
        for (id, repetition) in IDS {
            assert!(requests.open(id, stored(id.0 as u8), repetition));
        }
    }

    /// Connects, and returns the frames that are sent then, with the requests that may have missed changes.
    async fn sent_after_connect(requests: &mut OpenRequests) -> (Vec<u8>, Vec<ExchangeId>) {
        let (sender, writer) = outbox();
        let follows = requests.connected(sender.clone());
        requests.link = Link::Down;
        (sent(sender, writer).await, follows)
    }

    #[tokio::test]
    async fn a_request_that_may_have_run_is_never_sent_twice() {
        let mut requests = OpenRequests::default();
        all_open(&mut requests);
        assert_eq!(sent_after_connect(&mut requests).await, (vec![1, 2, 3], vec![ExchangeId(3)]));
        requests.begun(ExchangeId(1));
        assert_eq!(requests.disconnected(), [ExchangeId(1)]);
        assert_eq!(sent_after_connect(&mut requests).await.0, [2, 3]);
        assert_eq!(requests.disconnected(), [ExchangeId(2)]);
        assert_eq!(sent_after_connect(&mut requests).await.0, [3]);
    }

    #[tokio::test]
    async fn a_request_that_had_not_begun_is_sent_once_more() {
        let mut requests = OpenRequests::default();
        assert!(requests.open(ExchangeId(1), stored(1), Repetition::Never));
        for _ in 0..SENT_MAX {
            assert_eq!(requests.disconnected(), []);
            assert_eq!(sent_after_connect(&mut requests).await.0, [1]);
        }
        assert_eq!(requests.disconnected(), [ExchangeId(1)]);
    }

    #[tokio::test]
    async fn without_a_connection_only_changes_are_still_followed() {
        let mut requests = OpenRequests::default();
        all_open(&mut requests);
        assert_eq!(requests.disconnected(), []);
        assert_eq!(requests.give_up(), [ExchangeId(1), ExchangeId(2)]);
        assert_eq!(sent_after_connect(&mut requests).await.0, [3]);
    }

    #[tokio::test]
    async fn a_draining_engine_gets_inputs_and_no_new_request() {
        let mut requests = OpenRequests::default();
        let (sender, writer) = outbox();
        requests.connected(sender.clone());
        all_open(&mut requests);
        requests.draining();
        assert!(requests.open(ExchangeId(4), stored(4), Repetition::Never));
        requests.send_about(ExchangeId(4), vec![vec![40]]);
        requests.send_about(ExchangeId(1), vec![vec![10]]);
        requests.begun(ExchangeId(1));
        assert_eq!(requests.disconnected(), [ExchangeId(1)]);
        assert_eq!(sent(sender, writer).await, [1, 2, 3, 10]);
        assert_eq!(sent_after_connect(&mut requests).await.0, [2, 3, 4]);
    }

    #[test]
    fn open_requests_are_bounded() {
        let mut requests = OpenRequests::default();
        let opened =
            (0..2 * OPEN_MAX as u64).filter(|id| requests.open(ExchangeId(*id), stored(0), Repetition::Once));
        assert_eq!(opened.count(), OPEN_MAX);
    }
}
