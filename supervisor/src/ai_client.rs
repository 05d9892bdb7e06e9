//! The AI client of one execution, as far as upstream servers reach it while the code runs: the person behind it, whom a
//! tool may ask for something, and its display of progress.

mod clock;
mod question;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, ServerName};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use clock::Clock;
pub(crate) use question::{Mode, Question};

use crate::audit::Audit;

/// Questions of one execution, whoever asks them.
const QUESTIONS_MAX: u32 = 20;
/// Messages that wait for the AI client. Progress beyond it is dropped.
const WAITING_MAX: usize = 16;
/// An AI client whose time is up is given up first, and its execution with it.
const MARGIN: Duration = Duration::from_secs(1);

/// What the AI client said that it can do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abilities {
    /// Show a form to a person.
    pub(crate) form: bool,
    /// Have a person open a URL.
    pub(crate) url: bool,
}

/// What goes to the AI client.
#[derive(Debug)]
pub(crate) enum Message {
    Question {
        question: Question,
        answer: oneshot::Sender<Result<Answer, Unasked>>,
    },
    /// In words.
    Progress(String),
}

/// What a person said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// With the values of the form, if it was one.
    Accept(Option<Value>),
    Decline,
    Cancel,
}

/// Why nobody was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unasked {
    #[error("this AI client cannot ask one")]
    Unable,
    #[error("this execution has asked {QUESTIONS_MAX} times already")]
    TooMany,
    #[error("this AI client has too many questions open")]
    Busy,
}

/// The way to the AI client of one execution.
#[derive(Clone, Debug)]
pub(crate) struct AiClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    execution: ExecutionId,
    abilities: Abilities,
    audit: Arc<Audit>,
    patience: Duration,
    asked: AtomicU32,
    /// Questions without an answer. Clocks stand still while there are any.
    open: watch::Sender<usize>,
    messages: mpsc::Sender<Message>,
}

/// The end of it that the front holds: what it can do, and where messages go.
#[derive(Debug)]
pub(crate) struct Line {
    /// What it calls itself.
    pub(crate) client: Option<ClientName>,
    abilities: Abilities,
    messages: mpsc::Sender<Message>,
}

impl Line {
    pub(crate) fn new(client: Option<ClientName>, abilities: Abilities) -> (Self, mpsc::Receiver<Message>) {
        let (messages, receiver) = mpsc::channel(WAITING_MAX);
        (Self { client, abilities, messages }, receiver)
    }
}

impl AiClient {
    /// `patience` is how long a person may take.
    pub(crate) fn new(line: Line, execution: ExecutionId, audit: Arc<Audit>, patience: Duration) -> Self {
        let Line { abilities, messages, .. } = line;
        let (open, asked) = (watch::Sender::new(0), AtomicU32::new(0));
        Self(Arc::new(Shared { execution, abilities, audit, patience, asked, open, messages }))
    }

    pub(crate) fn can(&self, mode: Mode) -> bool {
        match mode {
            Mode::Form => self.0.abilities.form,
            Mode::Url => self.0.abilities.url,
        }
    }

    /// A clock that stands still while a person is asked on behalf of this execution.
    pub(crate) fn clock(&self, limit: Duration) -> Clock {
        Clock::new(limit, Some(self.0.open.subscribe()))
    }

    /// Asks the person, and waits for the answer. That it was asked is in the audit log, with what became of it.
    pub(crate) async fn ask(&self, server: &ServerName, question: Question) -> Result<Answer, Unasked> {
        let answer = self.try_ask(question).await;
        let outcome = match &answer {
            Ok(Answer::Accept(_)) => "accept",
            Ok(Answer::Decline) => "decline",
            Ok(Answer::Cancel) => "cancel",
            Err(_) => "not asked",
        };
        if let Err(error) = self.0.audit.question(self.0.execution, server, outcome) {
            tracing::error!("{error}");
        }
        answer
    }

    async fn try_ask(&self, question: Question) -> Result<Answer, Unasked> {
        if !self.can(question.mode()) {
            return Err(Unasked::Unable);
        }
        if self.0.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            return Err(Unasked::TooMany);
        }
        let (answer, answered) = oneshot::channel();
        self.0.messages.try_send(Message::Question { question, answer }).map_err(|_| Unasked::Busy)?;
        let _open = Open::new(&self.0.open);
        match tokio::time::timeout(self.0.patience + MARGIN, answered).await {
            Ok(Ok(answer)) => answer,
            // The front let go of the question.
            Ok(Err(_)) => Err(Unasked::Busy),
            Err(_) => Ok(Answer::Cancel),
        }
    }

    /// Shows progress, if there is room for it.
    pub(crate) fn progress(&self, words: String) {
        let _ = self.0.messages.try_send(Message::Progress(words));
    }
}

/// Counts a question as long as it is open.
struct Open<'a>(&'a watch::Sender<usize>);

impl<'a> Open<'a> {
    fn new(open: &'a watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
