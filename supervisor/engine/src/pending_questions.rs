//! Pending questions of one exchange: questions to the user of an AI client that the front has and that are not
//! answered.

use std::collections::BTreeMap;

use lockhouse_messages::{Answer, AskError, OpenQuestion};
use lockhouse_upstream::ai_client::PendingQuestion;

/// Pending questions, by the key under which the front knows them.
#[derive(Debug, Default)]
pub(crate) struct PendingQuestions {
    last: usize,
    open: BTreeMap<String, PendingQuestion>,
}

impl PendingQuestions {
    /// Adds a question and returns the message for the front. Returns `None` if the asker no longer waits.
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

    /// Returns all questions whose askers still wait.
    pub(crate) fn all(&mut self) -> Vec<OpenQuestion> {
        self.open.retain(|_, pending| !pending.is_abandoned());
        self.open.iter().map(|(key, pending)| open_question(key, pending)).collect()
    }
}

fn open_question(key: &str, pending: &PendingQuestion) -> OpenQuestion {
    OpenQuestion { key: key.to_owned(), question: pending.question.clone(), time_left: pending.time_left() }
}
