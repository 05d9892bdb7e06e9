//! Limits how much an upstream server may send on one connection without being asked, and tracks Lockhouse's requests
//! that the server has not answered.
//!
//! The messages of all upstream servers are read on threads that they share, so many messages of one server would block
//! the others. Answers to calls are not limited here, since calls have limits of their own. All other messages
//! (notifications, requests, unexpected answers, invalid text) are charged to the server's allowance; a server that
//! exceeds its allowance is disconnected. Progress notifications of a call have a separate allowance; when it is used
//! up, reading pauses until it is refilled.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::token_bucket::TokenBucket;
use rmcp::model::{JsonRpcMessage, ProgressToken, RequestId, ServerNotification};
use tokio::time::Instant;

use crate::client::connection_failure::FailureSignal;
use crate::client::inbound_message::{InboundMessage, JsonRpcResult, RxMessage};

/// Number of bytes of unsolicited messages that a server may send at once. After that it may send `BYTES_PER_SECOND`.
/// Bound: upstream servers.
const BURST_BYTES: u32 = 4 * 1024 * 1024;
const BYTES_PER_SECOND: u32 = 256 * 1024;
/// Number of bytes that are read without a pause, separately for unsolicited messages and for progress notifications.
/// After that, Lockhouse reads more slowly, since reading a full burst at once would block all other connections for
/// half a second.
/// Bound: upstream servers.
const UNPACED_BYTES: u32 = 256 * 1024;
const PACED_BYTES_PER_SECOND: u32 = 2 * 1024 * 1024;
/// Rate at which progress notifications of calls are read, in bytes per second.
/// Bound: upstream servers.
const PROGRESS_BYTES_PER_SECOND: u32 = 1024 * 1024;
/// Number of bytes that are charged for each unsolicited message in addition to its size, since small messages take
/// time as well.
/// Bound: upstream servers.
const MESSAGE_BYTES: usize = 256;
/// Maximum number of Lockhouse's unanswered requests that are tracked; beyond it, the oldest is forgotten. A cancelled
/// request is tracked as well, since the server may still answer it.
const PENDING_REQUESTS_MAX: usize = 4096;

const TOO_MUCH: &str = "it exceeded the limit for unsolicited messages: 4 MiB at once, and 256 KiB per second \
                        after that";

/// Limits how much an upstream server may send on one connection without being asked. Clones share the counters.
#[derive(Clone, Debug)]
pub struct TrafficLimiter {
    state: Arc<Mutex<TrafficState>>,
    failure_signal: FailureSignal,
}

/// A message within the server's traffic allowance.
pub enum Admitted {
    /// The first answer to a request of Lockhouse.
    Answer(RequestId, JsonRpcResult),
    /// A request or notification of the server (`None` if it is dropped), and the time until which reading must pause
    /// (`None` if no pause is needed).
    Unsolicited(Option<Box<RxMessage>>, Option<Instant>),
}

#[derive(Debug)]
struct TrafficState {
    /// Lockhouse's unanswered requests, by their IDs.
    pending_requests: HashMap<i64, PendingRequest>,
    /// Number of requests that Lockhouse has sent on this connection.
    requests_sent: u64,
    unsolicited: TokenBucket,
    pace: TokenBucket,
    progress: TokenBucket,
}

/// A request of Lockhouse that the server has not answered yet.
#[derive(Debug)]
struct PendingRequest {
    /// The position of the request among all requests of the connection, in the order in which they were sent. The
    /// oldest request has the lowest position.
    position: u64,
    token: Option<ProgressToken>,
}

impl TrafficLimiter {
    pub fn new(failure_signal: FailureSignal) -> Self {
        let now = Instant::now().into_std();
        let bucket = |burst, per_second| TokenBucket::new(Duration::from_secs(1) / per_second, burst, now);
        let unsolicited = bucket(BURST_BYTES, BYTES_PER_SECOND);
        let pace = bucket(UNPACED_BYTES, PACED_BYTES_PER_SECOND);
        let progress = bucket(UNPACED_BYTES, PROGRESS_BYTES_PER_SECOND);
        let pending_requests = HashMap::new();
        let state = TrafficState { pending_requests, requests_sent: 0, unsolicited, pace, progress };
        Self { state: Arc::new(Mutex::new(state)), failure_signal }
    }

    /// Records that Lockhouse sent a request with this ID to the server. `token` is the token with which the server
    /// refers to the request in progress notifications.
    pub fn record_pending(&self, id: i64, token: Option<ProgressToken>) {
        let mut state = self.state.lock();
        state.requests_sent += 1;
        let request = PendingRequest { position: state.requests_sent, token };
        state.pending_requests.insert(id, request);
        if state.pending_requests.len() > PENDING_REQUESTS_MAX {
            let oldest = state.pending_requests.iter().min_by_key(|(_, request)| request.position);
            let oldest = oldest.map(|(id, _)| *id);
            oldest.and_then(|id| state.pending_requests.remove(&id));
        }
    }

    /// Records an answer of the server. Returns true if it is the first answer to a request that Lockhouse sent.
    pub fn take_pending(&self, id: &RequestId) -> bool {
        matches!(id, RequestId::Number(id) if self.state.lock().pending_requests.remove(id).is_some())
    }

    /// Whether any request of Lockhouse to the server is not answered yet.
    pub fn has_pending_requests(&self) -> bool {
        !self.state.lock().pending_requests.is_empty()
    }

    /// Charges a message to the server's traffic allowance. Returns `None` if the server must be disconnected.
    pub fn admit(&self, (cost, message): (usize, InboundMessage)) -> Option<Admitted> {
        match message {
            InboundMessage::Answer(id, answer) if self.take_pending(&id) => {
                Some(Admitted::Answer(id, answer))
            }
            InboundMessage::Answer(..) => {
                self.charge_unsolicited(cost).then_some(Admitted::Unsolicited(None, None))
            }
            InboundMessage::Unsolicited(message) => {
                let pause = self.charge_unsolicited_message(cost, message.as_deref())?;
                Some(Admitted::Unsolicited(message, pause))
            }
            InboundMessage::Violation(message) => {
                self.fail_for_violation(message);
                None
            }
        }
    }

    /// Charges a request, a notification or an invalid message to the server's traffic allowance. Returns `None`
    /// if the server must be disconnected. Otherwise returns the time until which reading must pause, or
    /// `Some(None)` if no pause is needed.
    fn charge_unsolicited_message(
        &self,
        cost: usize,
        message: Option<&RxMessage>,
    ) -> Option<Option<Instant>> {
        let token = message.and_then(progress);
        let is_of_a_call = token.is_some()
            && self.state.lock().pending_requests.values().any(|request| request.token.as_ref() == token);
        if !is_of_a_call && !self.charge_unsolicited(cost) {
            return None;
        }
        let mut state = self.state.lock();
        let bucket = if is_of_a_call { &mut state.progress } else { &mut state.pace };
        let now = Instant::now();
        let wait = charge(bucket, cost + MESSAGE_BYTES, now);
        Some(wait.map(|wait| now + wait))
    }

    /// Charges an unsolicited message of this cost in bytes to the server's traffic allowance. If the allowance
    /// is exceeded, the connection fails. Returns whether the connection may continue.
    pub fn charge_unsolicited(&self, cost: usize) -> bool {
        self.charge_bytes(cost + MESSAGE_BYTES)
    }

    /// Charges a number of bytes, such as those of comments in an event stream, to the server's traffic
    /// allowance. If the allowance is exceeded, the connection fails. Returns whether the connection may
    /// continue.
    pub fn charge_bytes(&self, bytes: usize) -> bool {
        let within = charge(&mut self.state.lock().unsolicited, bytes, Instant::now()).is_none();
        if !within {
            self.failure_signal.fail_for_violation(TOO_MUCH);
        }
        within && !self.has_failed()
    }

    /// Ends the connection because the server sent something over the size limit that cannot be matched to a request of
    /// Lockhouse. It could be an answer, whose caller would otherwise wait for ever. If Lockhouse has no unanswered
    /// request, it counts as a violation. `message` describes the failure.
    pub fn fail_unattributable(&self, message: &str) {
        match self.has_pending_requests() {
            true => self.failure_signal.fail(message),
            false => self.fail_for_violation(message),
        }
    }

    /// Ends the connection because the server exceeded a limit or broke the protocol. `message` describes the
    /// violation.
    pub fn fail_for_violation(&self, message: &str) {
        self.failure_signal.fail_for_violation(message);
    }

    pub fn has_failed(&self) -> bool {
        self.failure_signal.reason().is_some()
    }
}

/// Charges a bucket for a number of bytes. Returns how long it is in debt.
fn charge(bucket: &mut TokenBucket, bytes: usize, now: Instant) -> Option<Duration> {
    bucket.charge(u32::try_from(bytes).unwrap_or(u32::MAX), now.into_std())
}

/// Returns the progress token of a progress notification; `None` for other messages.
fn progress(message: &RxMessage) -> Option<&ProgressToken> {
    match message {
        JsonRpcMessage::Notification(note) => match &note.notification {
            ServerNotification::ProgressNotification(note) => Some(&note.params.progress_token),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    /// Records a request whose progress token equals its ID.
    fn record(traffic: &TrafficLimiter, id: i64) {
        traffic.record_pending(id, Some(ProgressToken(NumberOrString::Number(id))));
    }

    #[test]
    fn progress_of_a_call_makes_its_reader_wait_and_progress_of_none_is_counted_as_unasked() {
        let note = |token: i64| -> RxMessage {
            let note = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}});
            serde_json::from_value(note).expect("a message")
        };
        let failure_signal = FailureSignal::default();
        let traffic = TrafficLimiter::new(failure_signal.clone());
        record(&traffic, 7);
        let begun = Instant::now();
        let mut until = None;
        for _ in 0..40_000 {
            until = traffic.charge_unsolicited_message(100, Some(&note(7))).expect("it goes on");
        }
        // 14 MB, of which 256 KiB are free, at 1 MiB per second.
        let wait = until.expect("it waits").duration_since(begun);
        assert!((12..=15).contains(&wait.as_secs()), "{wait:?}");
        assert!(failure_signal.reason().is_none());
        let first = traffic.charge_unsolicited_message(100, Some(&note(8)));
        assert_eq!(first, Some(None), "control: the first that nobody asked for does not wait");
        let paced = (0..10_000)
            .find_map(|_| traffic.charge_unsolicited_message(100, Some(&note(8))).expect("it goes on"));
        assert!(paced.is_some(), "what comes at once is read slowly");
        let more = (0..40_000).find(|_| traffic.charge_unsolicited_message(100, Some(&note(8))).is_none());
        assert!(more.is_some() && failure_signal.reason().is_some_and(|reason| reason.message == TOO_MUCH));
    }

    #[test]
    fn answers_are_free_once_and_everything_else_is_counted() {
        let failure_signal = FailureSignal::default();
        let traffic = TrafficLimiter::new(failure_signal.clone());
        let id = RequestId::Number(7);
        assert!(!traffic.take_pending(&id), "nobody asked");
        record(&traffic, 7);
        assert!(
            traffic.has_pending_requests()
                && traffic.take_pending(&id)
                && !traffic.take_pending(&id)
                && !traffic.has_pending_requests()
        );
        assert!(!traffic.take_pending(&RequestId::String("7".into())));
        let mut messages = 0;
        while traffic.charge_unsolicited(100) {
            messages += 1;
        }
        assert!((10_000..20_000).contains(&messages), "{messages}");
        assert!(
            failure_signal.reason().is_some_and(|reason| reason.is_violation && reason.message == TOO_MUCH)
        );
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten_in_the_end() {
        let traffic = TrafficLimiter::new(FailureSignal::default());
        (0..10_000).for_each(|id| record(&traffic, id));
        assert!(
            !traffic.take_pending(&RequestId::Number(0)) && traffic.take_pending(&RequestId::Number(9_999))
        );
    }
}
