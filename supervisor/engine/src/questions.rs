//! Questions to the person behind an AI client that were told to a front, until they have their answers.

use std::collections::BTreeMap;

use lockhouse_messages::{Answer, OpenQuestion, Unasked};
use lockhouse_upstream::ai_client::Posed;

/// Questions that were told to the front and have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    last: usize,
    open: BTreeMap<String, Posed>,
}

impl Questions {
    /// As the front is told of it. None if whoever asks has given up.
    pub(crate) fn open(&mut self, posed: Posed) -> Option<OpenQuestion> {
        if posed.is_over() {
            return None;
        }
        self.last += 1;
        let key = format!("question-{}", self.last);
        let question = open_question(&key, &posed);
        self.open.insert(key, posed);
        Some(question)
    }

    pub(crate) fn answer(&mut self, key: &str, answer: Result<Answer, Unasked>) {
        if let Some(posed) = self.open.remove(key) {
            let _ = posed.answer.send(answer);
        }
    }

    /// Those whose askers still wait.
    pub(crate) fn all(&mut self) -> Vec<OpenQuestion> {
        self.open.retain(|_, posed| !posed.is_over());
        self.open.iter().map(|(key, posed)| open_question(key, posed)).collect()
    }
}

fn open_question(key: &str, posed: &Posed) -> OpenQuestion {
    OpenQuestion { key: key.to_owned(), question: posed.question.clone(), patience: posed.patience() }
}
