//! The channel from one execution of submitted code to its AI client: questions of upstream servers to the user,
//! notifications of upstream servers, and progress messages.

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

/// Maximum number of messages of one run that wait to be sent to the AI client. If the queue is full, a question to the
/// user fails.
const WAITING_MAX: usize = 16;
/// Number of places in a run's message queue that are reserved for questions to the user, so that progress messages and
/// notifications cannot fill the queue.
const FOR_QUESTIONS: usize = 8;
/// Time that [`AiClient`] waits for an answer after the deadline of a question. Within this time the front (the side of
/// Lockhouse that faces AI clients) reports that the question has expired.
const MARGIN: Duration = Duration::from_secs(1);

/// A message of a run to the AI client that started it.
#[derive(Debug)]
pub enum ClientMessage {
    Question(PendingQuestion),
    /// A progress message of the run, as text.
    Progress(String),
    /// A notification of an upstream server that the AI client uses directly, without submitted code.
    Forwarded(ForwardedNotification),
}

/// A question to the user of an AI client that the user has not answered yet.
#[derive(Debug)]
pub struct PendingQuestion {
    pub question: Question,
    /// When the call that asked the question stops waiting for the user's answer.
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

/// Sends questions, notifications and progress messages to the AI client of one execution. Clones use the same channel.
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

/// What an execution knows of its AI client: the client's identity and capabilities, and the channel for messages to
/// the client. The front (the side that faces AI clients) creates it together with the other end of the channel, a
/// [`RunFollower`].
#[derive(Debug)]
pub struct ClientChannel {
    /// The name that the AI client gave itself; `None` if it gave no name.
    pub client: Option<ClientName>,
    /// The authenticated identity of the AI client.
    pub principal: Principal,
    pub execution: ExecutionId,
    /// Receives requests for a progress report on the run, from AI clients and from commands.
    pub progress_requests: ProgressRequests,
    abilities: InputSupport,
    messages: mpsc::Sender<ClientMessage>,
}

/// The front's end of the channel between a run and its AI client. (The front is the side of Lockhouse that faces AI
/// clients.) The front receives the messages of the run here, and can request the progress of the run.
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
    /// Creates the sender of one run's messages to its AI client. `time_left` is how long the user may take to answer a
    /// question of an upstream server. `open` contains the open questions of the run, which pause its timers.
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

    /// Whether the AI client lists its roots (`roots/list` of MCP) to upstream servers that it uses directly.
    pub fn supports_roots(&self) -> bool {
        self.0.abilities.roots
    }

    /// Asks the user a question of an upstream server and waits for the answer. The question and its outcome are
    /// recorded in the audit log. Returns an error if the question cannot be asked.
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

    /// Records in the audit log that an upstream server's question was forwarded to the AI client. The AI client sends
    /// the answer when it repeats its call.
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

    /// Asks the user a question and waits for the answer, at most for `time_left`. The question does not count towards
    /// the limit of questions per run and is not recorded in the audit log. While this method waits, its caller must
    /// hold an [`OpenQuestionGuard`](pausable_timer::OpenQuestionGuard), which pauses the timers of the run.
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

    /// Sends a notification of an upstream server to the AI client. Drops the notification if the message queue has
    /// only the places left that are reserved for questions.
    pub fn forward(&self, notification: ForwardedNotification) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(ClientMessage::Forwarded(notification));
        }
    }

    /// Sends a progress message to the AI client. Drops the message if the message queue has only the places left that
    /// are reserved for questions.
    pub fn send_progress(&self, words: String) {
        if self.0.messages.capacity() > FOR_QUESTIONS {
            let _ = self.0.messages.try_send(ClientMessage::Progress(words));
        }
    }
}
