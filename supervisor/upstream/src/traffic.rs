//! What a server may send on one connection without being asked, and which answers it still owes.
//!
//! Everything that an upstream server sends is read on the one thread that serves all clients. An answer was asked for by
//! a call, and calls have limits. Everything else (notifications, requests, answers to nothing, text that is no message)
//! costs the server's own allowance; when it is used up, the server is disconnected. Progress of a call is between the two:
//! the call asked for it, but not for how much of it. It has an allowance of its own; when that is used up, nothing is read of
//! the server until it is there again.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_base::token_bucket::Allowance;
use rmcp::model::{
    ClientRequest, GetMeta, JsonRpcMessage, JsonRpcRequest, ProgressToken, RequestId, ServerNotification,
};
use tokio::time::Instant;

use super::broken::Broken;
use super::inbound::{Inbound, Received};

/// Unsolicited bytes at once, and how many more each second.
const BURST_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 256.0 * 1024.0;
/// Of unsolicited bytes, and of progress, what is read as fast as it comes; then nothing more is read of the server for a while. All that
/// may come at once would otherwise keep all other clients waiting for half a second.
const UNPACED_BYTES: f64 = 256.0 * 1024.0;
const PACED_BYTES_PER_SECOND: f64 = 2.0 * 1024.0 * 1024.0;
/// Bytes of progress of calls each second.
const PROGRESS_BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;
/// Bytes that each unsolicited message counts besides its own: small ones cost time as well.
const MESSAGE_BYTES: usize = 256;
/// Requests of ours without an answer that are remembered. A server may still answer one that was given up.
const OWED_MAX: usize = 4096;

const TOO_MUCH: &str = "it sent more messages that nobody asked for than a server may: 4 MiB at once, and 256 KiB each second \
                        after that";

/// Of one connection.
#[derive(Clone)]
pub(super) struct Traffic {
    counts: Arc<Mutex<Counts>>,
    broken: Broken,
}

struct Counts {
    /// Requests of ours, which rmcp numbers upwards, and how a server names each in telling of its progress.
    owed: BTreeMap<i64, Option<ProgressToken>>,
    unsolicited: Allowance,
    pace: Allowance,
    progress: Allowance,
}

impl Traffic {
    pub(super) fn new(broken: Broken) -> Self {
        let unsolicited = Allowance::new(BURST_BYTES, BYTES_PER_SECOND);
        let pace = Allowance::new(UNPACED_BYTES, PACED_BYTES_PER_SECOND);
        let progress = Allowance::new(UNPACED_BYTES, PROGRESS_BYTES_PER_SECOND);
        let counts = Counts { owed: BTreeMap::new(), unsolicited, pace, progress };
        Self { counts: Arc::new(Mutex::new(counts)), broken }
    }

    /// A request of ours goes out.
    pub(super) fn requested(&self, request: &JsonRpcRequest<ClientRequest>) {
        if let RequestId::Number(id) = request.id {
            let token = request.request.get_meta().get_progress_token();
            let mut counts = self.counts();
            counts.owed.insert(id, token);
            if counts.owed.len() > OWED_MAX {
                counts.owed.pop_first();
            }
        }
    }

    /// An answer came: whether it was asked for, and is the first one.
    pub(super) fn answered(&self, id: &RequestId) -> bool {
        matches!(id, RequestId::Number(id) if self.counts().owed.remove(id).is_some())
    }

    /// Whether any answer could still come.
    pub(super) fn owes(&self) -> bool {
        !self.counts().owed.is_empty()
    }

    /// What is passed on of a message of this cost, and until when nothing more is read of the server. `None` to disconnect it.
    pub(super) fn admitted(
        &self,
        (cost, message): (usize, Inbound),
    ) -> Option<(Option<Received>, Option<Instant>)> {
        match message {
            Inbound::Answer(id, message) if self.answered(&id) => Some((Some(message), None)),
            Inbound::Answer(..) => self.unsolicited(cost).then_some((None, None)),
            Inbound::Unsolicited(message) => {
                let pause = self.unasked(cost, message.as_ref())?;
                Some((message, pause))
            }
            Inbound::Violation(words) => {
                self.violated(words);
                None
            }
        }
    }

    /// A request or a notification of this cost came, or what is neither: until when nothing is read of the server.
    /// `None` to disconnect it.
    fn unasked(&self, cost: usize, message: Option<&Received>) -> Option<Option<Instant>> {
        let token = message.and_then(progress);
        let is_of_a_call = token.is_some() && self.counts().owed.values().any(|of| of.as_ref() == token);
        if !is_of_a_call && !self.unsolicited(cost) {
            return None;
        }
        let mut counts = self.counts();
        let allowance = if is_of_a_call { &mut counts.progress } else { &mut counts.pace };
        let wait = allowance.take(cost + MESSAGE_BYTES).err();
        Some(wait.map(|wait| Instant::now() + wait))
    }

    /// A message of this cost came that nobody asked for: whether the connection goes on.
    pub(super) fn unsolicited(&self, cost: usize) -> bool {
        self.ignored(cost + MESSAGE_BYTES)
    }

    /// So many bytes came that are part of no message: whether the connection goes on.
    pub(super) fn ignored(&self, bytes: usize) -> bool {
        let within = self.counts().unsolicited.take(bytes).is_ok();
        if !within {
            self.broken.exceeded(TOO_MUCH);
        }
        within && !self.is_over()
    }

    /// A message over the limit came that names no request of ours. It may well be an answer, for which somebody would wait for
    /// ever: the connection ends. If no answer is due, the server sent what no server may.
    pub(super) fn unattributable(&self, words: &str) {
        match self.owes() {
            true => self.broken.tell(words),
            false => self.violated(words),
        }
    }

    /// The server sent what no server may send.
    pub(super) fn violated(&self, words: &str) {
        self.broken.exceeded(words);
    }

    pub(super) fn is_over(&self) -> bool {
        self.broken.reason().is_some()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }
}

/// Of a note of progress, the call that it is for.
fn progress(message: &Received) -> Option<&ProgressToken> {
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
    use rmcp::model::{NumberOrString, PingRequest, RequestMetaObject};

    use super::*;

    /// A request of ours, whose progress is told by the same number.
    fn request(id: i64) -> JsonRpcRequest<ClientRequest> {
        let mut request = ClientRequest::PingRequest(PingRequest::default());
        let meta: &mut RequestMetaObject = request.get_meta_mut();
        meta.set_progress_token(ProgressToken(NumberOrString::Number(id)));
        JsonRpcRequest::new(RequestId::Number(id), request)
    }

    #[test]
    fn progress_of_a_call_makes_its_reader_wait_and_progress_of_none_is_counted_as_unasked() {
        let note = |token: i64| -> Received {
            let note = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}});
            serde_json::from_value(note).expect("a message")
        };
        let broken = Broken::default();
        let traffic = Traffic::new(broken.clone());
        traffic.requested(&request(7));
        let begun = Instant::now();
        let mut until = None;
        for _ in 0..40_000 {
            until = traffic.unasked(100, Some(&note(7))).expect("it goes on");
        }
        // 14 MB, of which 256 KiB are free, at 1 MiB each second.
        let wait = until.expect("it waits").duration_since(begun);
        assert!((12..=15).contains(&wait.as_secs()), "{wait:?}");
        assert!(broken.reason().is_none());
        let first = traffic.unasked(100, Some(&note(8)));
        assert_eq!(first, Some(None), "control: the first that nobody asked for does not wait");
        let paced = (0..10_000).find_map(|_| traffic.unasked(100, Some(&note(8))).expect("it goes on"));
        assert!(paced.is_some(), "what comes at once is read slowly");
        let more = (0..40_000).find(|_| traffic.unasked(100, Some(&note(8))).is_none());
        assert!(more.is_some() && broken.reason().is_some_and(|reason| reason.words == TOO_MUCH));
    }

    #[test]
    fn answers_are_free_once_and_everything_else_is_counted() {
        let broken = Broken::default();
        let traffic = Traffic::new(broken.clone());
        let id = RequestId::Number(7);
        assert!(!traffic.answered(&id), "nobody asked");
        traffic.requested(&request(7));
        assert!(traffic.owes() && traffic.answered(&id) && !traffic.answered(&id) && !traffic.owes());
        assert!(!traffic.answered(&RequestId::String("7".into())));
        let mut messages = 0;
        while traffic.unsolicited(100) {
            messages += 1;
        }
        assert!((10_000..20_000).contains(&messages), "{messages}");
        assert!(broken.reason().is_some_and(|reason| reason.is_excess && reason.words == TOO_MUCH));
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten_in_the_end() {
        let traffic = Traffic::new(Broken::default());
        (0..10_000).for_each(|id| traffic.requested(&request(id)));
        assert!(!traffic.answered(&RequestId::Number(0)) && traffic.answered(&RequestId::Number(9_999)));
    }
}
