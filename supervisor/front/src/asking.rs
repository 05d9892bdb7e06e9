//! Questions to a person during a request, as the older eras put them: one after the other.

use std::collections::VecDeque;
use std::pin::Pin;

use lockhouse_messages::{Answer, OpenQuestion, Unasked};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{Duration, Instant};

use crate::ask;

/// The questions of one request.
pub(crate) struct Asking {
    peer: Peer<RoleServer>,
    /// Those that wait for their turn, each with when whoever asks gives up.
    waiting: VecDeque<(OpenQuestion, Instant)>,
    current: Option<Current>,
}

/// The question that the person is asked now.
struct Current {
    key: String,
    since: Instant,
    answer: Pin<Box<dyn Future<Output = Result<Answer, Unasked>> + Send>>,
}

/// What the person said to one question, and how long that took.
pub(crate) struct Answered {
    pub(crate) key: String,
    pub(crate) answer: Result<Answer, Unasked>,
    pub(crate) took: Duration,
}

impl Asking {
    pub(crate) fn new(peer: &Peer<RoleServer>) -> Self {
        Self { peer: peer.clone(), waiting: VecDeque::new(), current: None }
    }

    /// Whether the person is asked something.
    pub(crate) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn add(&mut self, question: OpenQuestion) {
        let until = Instant::now() + question.patience;
        self.waiting.push_back((question, until));
        self.begin();
    }

    /// Asks what has waited longest, if nothing is asked.
    fn begin(&mut self) {
        if self.current.is_some() {
            return;
        }
        self.current = self.waiting.pop_front().map(|(OpenQuestion { key, question, .. }, until)| {
            let since = Instant::now();
            let (peer, patience) = (self.peer.clone(), until.saturating_duration_since(since));
            let answer = Box::pin(async move { ask::ask(&peer, question, patience).await });
            Current { key, since, answer }
        });
    }

    /// Waits for the answer; for ever if nothing is asked.
    pub(crate) async fn answered(&mut self) -> Answered {
        let answer = match &mut self.current {
            Some(current) => current.answer.as_mut().await,
            None => std::future::pending().await,
        };
        let (key, since) = match self.current.take() {
            Some(Current { key, since, .. }) => (key, since),
            None => std::future::pending().await,
        };
        self.begin();
        Answered { key, answer, took: since.elapsed() }
    }
}
