//! The channel from one execution to its AI client while the code runs: questions of upstream servers to the user,
//! forwarded notifications, and progress.

mod pausable_timer;
mod progress_requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, ServerName};
use tokio::sync::{mpsc, oneshot};

pub use lockhouse_messages::{
    Answer, AskError, ForwardedNotification, InputSupport, QUESTIONS_MAX, Question, QuestionKind,
};
pub use pausable_timer::{OpenQuestions, PausableTimer};
pub use progress_requests::{ProgressHandle, ProgressRequests, RunStarted, TAIL_BYTES_MAX, progress_channel};

/// Maximum number of messages of one run that wait for the AI client. Progress messages beyond it are dropped.
const WAITING_MAX: usize = 16;
/// Number of places in the queue of messages that are reserved for questions, so that progress messages never block a
/// question.
const FOR_QUESTIONS: usize = 8;
/// How much longer than a question's deadline the engine waits, because the front answers an expired question itself.
const MARGIN: Duration = Duration::from_secs(1);

/// A message of a run to the AI client that started it.
#[derive(Debug)]
pub enum ClientMessage {
    Question(PendingQuestion),
    /// A progress message as text.
    Progress(String),
    /// A notification of a server that the client uses directly.
    Forwarded(ForwardedNotification),
}

/// A question that waits for the user's answer.
#[derive(Debug)]
pub struct PendingQuestion {
    pub question: Question,
    /// When the call that asked the question stops waiting for its answer.
    pub deadline: Instant,
    pub answer: oneshot::Sender<Result<Answer, AskError>>,
}

impl PendingQuestion {
    /// Returns how much time the user has left to answer the question.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether the call that asked the question has stopped waiting for the answer.
    pub fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// Sends questions, notifications and progress to the AI client of one execution. Clones use the same channel.
#[derive(Clone, Debug)]
pub struct AiClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    execution: ExecutionId,
    abilities: InputSupport,
    audit: Arc<Audit>,
    time_left: Duration,
    asked: AtomicU32,
    open: OpenQuestions,
    messages: mpsc::Sender<ClientMessage>,
}

/// What an execution knows of its AI client: identity, abilities, and where to send messages. Made by the front's
/// side together with a [`RunFollower`].
#[derive(Debug)]
pub struct ClientChannel {
    /// The name by which the AI client calls itself; `None` if it gave none.
    pub client: Option<ClientName>,
    /// The authenticated identity of the AI client.
    pub principal: Principal,
    pub execution: ExecutionId,
    /// Receives the requests of clients and commands for the progress of the run.
    pub progress_requests: ProgressRequests,
    abilities: InputSupport,
    messages: mpsc::Sender<ClientMessage>,
}

/// The front's side of the channel: receives the messages of the run and can request its progress.
#[derive(Debug)]
pub struct RunFollower {
    pub execution: ExecutionId,
    pub messages: mpsc::Receiver<ClientMessage>,
    pub progress_handle: ProgressHandle,
}

impl ClientChannel {
    pub fn new(
        client: Option<ClientName>,
        principal: Principal,
        abilities: InputSupport,
    ) -> (Self, RunFollower) {
        let execution = ExecutionId(uuid::Uuid::now_v7().as_u128());
        let (messages, receiver) = mpsc::channel(WAITING_MAX);
        let (progress_handle, progress_requests) = progress_channel();
        let followed = RunFollower { execution, messages: receiver, progress_handle };
        (Self { client, principal, execution, progress_requests, abilities, messages }, followed)
    }
}

impl AiClient {
    /// Creates the channel of one run. `time_left` is how long the user may take to answer a question of an upstream
    /// server.
    pub fn new(channel: ClientChannel, audit: Arc<Audit>, time_left: Duration, open: OpenQuestions) -> Self {
        let ClientChannel { execution, abilities, messages, .. } = channel;
        let asked = AtomicU32::new(0);
        Self(Arc::new(Shared { execution, abilities, audit, time_left, asked, open, messages }))
    }

    pub fn supports(&self, mode: QuestionKind) -> bool {
        match mode {
            QuestionKind::Form => self.0.abilities.form,
            QuestionKind::Url => self.0.abilities.url,
            QuestionKind::Sampling => self.0.abilities.sampling,
        }
    }

    /// Whether the client lists its roots to servers that it uses directly.
    pub fn supports_roots(&self) -> bool {
        self.0.abilities.roots
    }

    /// Asks the user a question of a server and waits for the answer. The question and its outcome are recorded in
    /// the audit log.
    pub async fn ask(&self, server: &ServerName, question: Question) -> Result<Answer, AskError> {
        let answer = self.try_ask(server, question).await;
        let outcome = match &answer {
            Ok(Answer::Accept(_)) => "accept",
            Ok(Answer::Decline) => "decline",
            Ok(Answer::Cancel) => "cancel",
            Ok(Answer::TimedOut) => "no answer in time",
            Ok(Answer::Malformed) => "no answer that MCP knows",
            Err(_) => "not asked",
        };
        self.record(server, outcome);
        answer
    }

    /// Records that a server's question was forwarded to the client, which answers it with its next call.
    pub fn record_forwarded(&self, server: &ServerName) {
        self.record(server, "handed on");
    }

    fn record(&self, server: &ServerName, outcome: &'static str) {
        if let Err(error) = self.0.audit.question(self.0.execution, server, outcome) {
            tracing::error!("{error}");
        }
    }

    async fn try_ask(&self, server: &ServerName, question: Question) -> Result<Answer, AskError> {
        if !self.supports(question.kind()) {
            return Err(AskError::Unsupported);
        }
        if self.0.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            return Err(AskError::TooMany);
        }
        let _open = self.0.open.open(format!("a question of server {server}"));
        self.ask_unrecorded(question, self.0.time_left).await
    }

    /// Asks the user a question without counting or recording it. The caller must keep an
    /// [`OpenQuestionGuard`](pausable_timer::OpenQuestionGuard) meanwhile.
    pub async fn ask_unrecorded(&self, question: Question, time_left: Duration) -> Result<Answer, AskError> {
        let (answer, answered) = oneshot::channel();
        let posed = ClientMessage::Question(PendingQuestion {
            question,
            deadline: Instant::now() + time_left,
            answer,
        });
        self.0.messages.try_send(posed).map_err(|_| AskError::Busy)?;
        match tokio::time::timeout(time_left + MARGIN, answered).await {
            Ok(Ok(answer)) => answer,
            // The front dropped the question without an answer.
            Ok(Err(_)) => Err(AskError::Busy),
            Err(_) => Ok(Answer::TimedOut),
        }
    }

    /// Forwards a notification of a server if the queue has room; drops it otherwise.
    pub fn forward(&self, notification: ForwardedNotification) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(ClientMessage::Forwarded(notification));
        }
    }

    /// Sends a progress message if the queue has room; drops it otherwise.
    pub fn send_progress(&self, words: String) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(ClientMessage::Progress(words));
        }
    }
}
