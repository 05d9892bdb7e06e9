//! The AI client of one execution, as far as upstream servers reach it while the code runs: the person behind it, whom a
//! tool may ask for something, and its display of progress.

mod clock;
mod course;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, ServerName};
use tokio::sync::{mpsc, oneshot};

pub use clock::{Clock, OpenQuestions};
pub use course::{Begun, Looks, TAIL_BYTES_MAX, Watch, looks};
pub use lockhouse_messages::{Abilities, Answer, Mode, Passed, QUESTIONS_MAX, Question, Unasked};

/// Messages that wait for the AI client. Progress beyond it is dropped.
const WAITING_MAX: usize = 16;
/// Of these, as many are kept free of progress, so that a question always finds room.
const FOR_QUESTIONS: usize = 8;
/// An AI client whose time is up is given up first, and its execution with it.
const MARGIN: Duration = Duration::from_secs(1);

/// What goes to the AI client.
#[derive(Debug)]
pub enum Message {
    Question(Posed),
    /// In words.
    Progress(String),
    /// From a server that the client has directly.
    Passed(Passed),
}

/// A question on its way to a person.
#[derive(Debug)]
pub struct Posed {
    pub question: Question,
    /// When whoever asks gives up.
    pub until: Instant,
    pub answer: oneshot::Sender<Result<Answer, Unasked>>,
}

impl Posed {
    /// How long they may still take.
    pub fn patience(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether whoever asks has given up.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The way to the AI client of one execution.
#[derive(Clone, Debug)]
pub struct AiClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    execution: ExecutionId,
    abilities: Abilities,
    audit: Arc<Audit>,
    patience: Duration,
    asked: AtomicU32,
    open: OpenQuestions,
    messages: mpsc::Sender<Message>,
}

/// The end of it that the front holds: what it can do, and where messages go.
#[derive(Debug)]
pub struct Line {
    /// What it calls itself.
    pub client: Option<ClientName>,
    /// As whom it was admitted.
    pub principal: Principal,
    pub execution: ExecutionId,
    /// Where the client asks what the run is doing.
    pub looks: Looks,
    abilities: Abilities,
    messages: mpsc::Sender<Message>,
}

/// The other end of it: how the run is followed.
#[derive(Debug)]
pub struct Followed {
    pub execution: ExecutionId,
    pub messages: mpsc::Receiver<Message>,
    pub watch: Watch,
}

impl Line {
    pub fn new(client: Option<ClientName>, principal: Principal, abilities: Abilities) -> (Self, Followed) {
        let execution = ExecutionId(uuid::Uuid::now_v7().as_u128());
        let (messages, receiver) = mpsc::channel(WAITING_MAX);
        let (watch, looks) = looks();
        let followed = Followed { execution, messages: receiver, watch };
        (Self { client, principal, execution, looks, abilities, messages }, followed)
    }
}

impl AiClient {
    /// `patience` is how long a person may take for a server's question.
    pub fn new(line: Line, audit: Arc<Audit>, patience: Duration, open: OpenQuestions) -> Self {
        let Line { execution, abilities, messages, .. } = line;
        let asked = AtomicU32::new(0);
        Self(Arc::new(Shared { execution, abilities, audit, patience, asked, open, messages }))
    }

    pub fn can(&self, mode: Mode) -> bool {
        match mode {
            Mode::Form => self.0.abilities.form,
            Mode::Url => self.0.abilities.url,
            Mode::Sampling => self.0.abilities.sampling,
        }
    }

    /// Whether the client names its roots to servers that it has directly.
    pub fn names_roots(&self) -> bool {
        self.0.abilities.roots
    }

    /// A server asks the person, and waits for the answer. That it asked is in the audit log, with what became of it.
    pub async fn ask(&self, server: &ServerName, question: Question) -> Result<Answer, Unasked> {
        let answer = self.try_ask(server, question).await;
        let outcome = match &answer {
            Ok(Answer::Accept(_)) => "accept",
            Ok(Answer::Decline) => "decline",
            Ok(Answer::Cancel) => "cancel",
            Ok(Answer::Silence) => "no answer in time",
            Ok(Answer::Garbled) => "no answer that MCP knows",
            Err(_) => "not asked",
        };
        self.note(server, outcome);
        answer
    }

    /// A server's question goes to the client as it is, to be answered with the next call.
    pub fn handed_on(&self, server: &ServerName) {
        self.note(server, "handed on");
    }

    fn note(&self, server: &ServerName, outcome: &'static str) {
        if let Err(error) = self.0.audit.question(self.0.execution, server, outcome) {
            tracing::error!("{error}");
        }
    }

    async fn try_ask(&self, server: &ServerName, question: Question) -> Result<Answer, Unasked> {
        if !self.can(question.mode()) {
            return Err(Unasked::Unable);
        }
        if self.0.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            return Err(Unasked::TooMany);
        }
        let _open = self.0.open.open(format!("a question of server {server}"));
        self.put(question, self.0.patience).await
    }

    /// Puts a question of our own, or of a server's, to the person. It is neither counted here nor recorded, and whoever asks
    /// says that it is open.
    pub async fn put(&self, question: Question, patience: Duration) -> Result<Answer, Unasked> {
        let (answer, answered) = oneshot::channel();
        let posed = Message::Question(Posed { question, until: Instant::now() + patience, answer });
        self.0.messages.try_send(posed).map_err(|_| Unasked::Busy)?;
        match tokio::time::timeout(patience + MARGIN, answered).await {
            Ok(Ok(answer)) => answer,
            // The front let go of the question.
            Ok(Err(_)) => Err(Unasked::Busy),
            Err(_) => Ok(Answer::Silence),
        }
    }

    /// Passes on what a server says, if there is room for it.
    pub fn pass(&self, passed: Passed) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(Message::Passed(passed));
        }
    }

    /// Shows progress, if there is room for it.
    pub fn progress(&self, words: String) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(Message::Progress(words));
        }
    }
}
