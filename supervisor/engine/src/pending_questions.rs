//! Pending questions of one exchange with a front: questions to the user of an AI client that were sent to the front
//! and are not answered yet.

use std::collections::BTreeMap;

use lockhouse_messages::{Answer, AskError, OpenQuestion};
use lockhouse_run_channel::PendingQuestion;

/// The pending questions of one exchange with a front, by the key that the front uses to answer a question.
#[derive(Debug, Default)]
pub(crate) struct PendingQuestions {
    last: usize,
    open: BTreeMap<String, PendingQuestion>,
}

impl PendingQuestions {
    /// Adds a question, and returns it in the form that is sent to the front. Returns `None` if nobody waits for the
    /// answer any more.
    pub(crate) fn open(&mut self, pending: PendingQuestion) -> Option<OpenQuestion> {
        if pending.is_abandoned() {
            return None;
        }
        self.last += 1;
        let key = format!("question-{}", self.last);
        let question = open_question(&key, &pending);
        self.open.insert(key, pending);
        Some(question)
    }

    pub(crate) fn answer(&mut self, key: &str, answer: Result<Answer, AskError>) {
        if let Some(pending) = self.open.remove(key) {
            let _ = pending.answer.send(answer);
        }
    }

    /// Returns all pending questions whose answer is still awaited, and removes the others.
    pub(crate) fn all(&mut self) -> Vec<OpenQuestion> {
        self.open.retain(|_, pending| !pending.is_abandoned());
        self.open.iter().map(|(key, pending)| open_question(key, pending)).collect()
    }
}

fn open_question(key: &str, pending: &PendingQuestion) -> OpenQuestion {
    OpenQuestion { key: key.to_owned(), question: pending.question.clone(), time_left: pending.time_left() }
}
