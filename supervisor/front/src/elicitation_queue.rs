//! Sends the questions that arise during one MCP request to the AI client as elicitation requests, one after the other.

use std::collections::VecDeque;
use std::pin::Pin;

use lockhouse_mcp::server::ClientChannel;
use lockhouse_messages::{Answer, AskError, OpenQuestion};
use tokio::time::{Duration, Instant};

use crate::elicitation;

/// The questions to the user that arose during one MCP request and are not answered yet.
pub(crate) struct ElicitationQueue {
    channel: ClientChannel,
    /// Questions that are not sent yet, each with its deadline.
    waiting: VecDeque<(OpenQuestion, Instant)>,
    current: Option<ActiveQuestion>,
}

/// The question that the AI client is answering now.
struct ActiveQuestion {
    key: String,
    since: Instant,
    answer: Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send>>,
}

/// The answer to one question, and how long the user took for it.
pub(crate) struct ElicitationAnswer {
    pub(crate) key: String,
    pub(crate) answer: Result<Answer, AskError>,
    pub(crate) took: Duration,
}

impl ElicitationQueue {
    pub(crate) fn new(channel: &ClientChannel) -> Self {
        Self { channel: channel.clone(), waiting: VecDeque::new(), current: None }
    }

    /// Returns whether a question has been sent and has no answer yet.
    pub(crate) fn has_active(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn add(&mut self, question: OpenQuestion) {
        let now = Instant::now();
        let until = now.checked_add(question.time_left).unwrap_or(now);
        self.waiting.push_back((question, until));
        self.start_next();
    }

    /// Sends the oldest waiting question, unless a question is already being answered.
    fn start_next(&mut self) {
        if self.current.is_some() {
            return;
        }
        self.current = self.waiting.pop_front().map(|(OpenQuestion { key, question, .. }, until)| {
            let since = Instant::now();
            let (channel, patience) = (self.channel.clone(), until.saturating_duration_since(since));
            let answer = Box::pin(async move { elicitation::elicit(&channel, question, patience).await });
            ActiveQuestion { key, since, answer }
        });
    }

    /// Waits for the answer to the question that was sent, and then sends the oldest waiting question. If no question
    /// was sent, the future never completes.
    pub(crate) async fn next_answer(&mut self) -> ElicitationAnswer {
        let answer = match &mut self.current {
            Some(current) => current.answer.as_mut().await,
            None => std::future::pending().await,
        };
        let (key, since) = match self.current.take() {
            Some(ActiveQuestion { key, since, .. }) => (key, since),
            None => std::future::pending().await,
        };
        self.start_next();
        ElicitationAnswer { key, answer, took: since.elapsed() }
    }
}
