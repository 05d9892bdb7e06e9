//! The channel between one run and its AI client: questions, notifications and progress.
//!
//! Upstream servers ask the user questions, send notifications and report progress. Approvals are questions as well.
//! All of them reach the AI client through [`RunChannel`], which also says who asked for the run: every crate between
//! an upstream server and the front takes the run from it. The front's end is [`RunFollower`].
//!
//! # Parts
//!
//! - [`PausableTimer`] is a timer of a run. It pauses while a question is open ([`OpenQuestions`]).
//! - [`ProgressHandle`] and [`ProgressRequests`]: a progress report is made only when one is requested.
//!
//! # Invariants
//!
//! - Nothing here knows MCP, an upstream server or a decision of the policy. Callers decide what is asked and whether
//!   it may be asked.
//! - No progress message or notification keeps a question from the user: some places of the queue are for questions
//!   alone.
//! - No question waits without a place. If the queue is full, it fails at once.
//! - No question of an upstream server is asked without an audit record.
//! - No run reaches its time limit while its user thinks about a question.
//!
//! # Limits
//!
//! A queue has 16 messages, and 8 of its places are for questions alone. One run asks at most [`QUESTIONS_MAX`]
//! questions of upstream servers.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod pausable_timer;
mod progress_requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockhouse_audit::Audit;
use lockhouse_base::own_host;
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
/// Time that [`RunChannel`] waits for an answer after the deadline of a question. Within this time the front (the side of
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

/// One run and the channel to its AI client: who asked for the run, and how questions, notifications and progress
/// messages reach the client. Clones belong to the same run.
#[derive(Clone, Debug)]
pub struct RunChannel(Arc<Channel>);

#[derive(Debug)]
struct Channel {
    execution: ExecutionId,
    principal: Principal,
    audit: Arc<Audit>,
    question_timeout: Duration,
    /// The number of questions that were asked.
    asked: AtomicU32,
    questions: OpenQuestions,
    is_direct: bool,
    /// `None` if there is no AI client, as with `lockhouse run`.
    messages: Option<mpsc::Sender<ClientMessage>>,
}

/// The front's end of the channel between a run and its AI client. The front receives the messages of the run here, and
/// can request the progress of the run.
#[derive(Debug)]
pub struct RunFollower {
    pub execution: ExecutionId,
    pub messages: mpsc::Receiver<ClientMessage>,
    pub progress_handle: ProgressHandle,
}

impl RunChannel {
    /// Creates the channel of a new run to the AI client of `principal`, the end of the channel that the front follows,
    /// and the receiver of requests for the run's progress. `question_timeout` is how long the user may take to answer a
    /// question of an upstream server. `is_direct` says that the AI client makes a call itself, without submitted code.
    pub fn open(
        principal: Principal,
        audit: Arc<Audit>,
        question_timeout: Duration,
        is_direct: bool,
    ) -> (Self, RunFollower, ProgressRequests) {
        let (messages, receiver) = mpsc::channel(WAITING_MAX);
        let (progress_handle, progress_requests) = progress_channel();
        let channel = Channel::new(principal, audit, question_timeout, is_direct, Some(messages));
        let follower = RunFollower { execution: channel.execution, messages: receiver, progress_handle };
        (Self(Arc::new(channel)), follower, progress_requests)
    }

    /// Creates the channel of a new run for the user at the command line, who is asked nothing.
    pub fn without_client(audit: Arc<Audit>) -> Self {
        Self(Arc::new(Channel::new(Principal::local(), audit, Duration::ZERO, false, None)))
    }

    pub fn execution(&self) -> ExecutionId {
        self.0.execution
    }

    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the name of the AI client for the policy and the audit log.
    pub fn client(&self) -> Option<&ClientName> {
        self.0.principal.client()
    }

    /// Returns the questions of this run that are not answered yet. They pause its timers.
    pub fn questions(&self) -> &OpenQuestions {
        &self.0.questions
    }

    /// Whether the AI client makes a call itself, without submitted code.
    pub fn is_direct(&self) -> bool {
        self.0.is_direct
    }

    /// Whether there is an AI client to which questions and notifications can be sent.
    pub fn has_client(&self) -> bool {
        self.0.messages.is_some()
    }

    /// Whether the AI client can ask its user questions of this kind.
    pub fn supports(&self, kind: QuestionKind) -> bool {
        let abilities = self.0.principal.abilities();
        let can = match kind {
            QuestionKind::Form => abilities.form,
            QuestionKind::Url => abilities.url,
            QuestionKind::Sampling => abilities.sampling,
        };
        can && self.has_client()
    }

    /// Whether the AI client lists its roots (`roots/list` of MCP) to upstream servers that it uses directly.
    pub fn supports_roots(&self) -> bool {
        self.has_client() && self.0.principal.abilities().roots
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
        let _open = self.0.questions.open(format!("a question of server {server}"));
        self.ask_unrecorded(question, self.0.question_timeout).await
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
        let messages = self.0.messages.as_ref().ok_or(AskError::Unsupported)?;
        messages.try_send(posed).map_err(|_| AskError::Busy)?;
        match tokio::time::timeout(time_left + MARGIN, answered).await {
            Ok(Ok(answer)) => answer,
            // The front dropped the question without an answer.
            Ok(Err(_)) => Err(AskError::Busy),
            Err(_) => Ok(Answer::TimedOut),
        }
    }

    /// Sends a notification of an upstream server to the AI client, unless there is no room for it.
    pub fn forward(&self, notification: ForwardedNotification) {
        self.send_unless_full(ClientMessage::Forwarded(notification));
    }

    /// Sends a progress message to the AI client, unless there is no room for it.
    pub fn send_progress(&self, text: String) {
        self.send_unless_full(ClientMessage::Progress(text));
    }

    /// Sends a message to the AI client. Drops the message if the queue has only the places left that are reserved for
    /// questions.
    fn send_unless_full(&self, message: ClientMessage) {
        if let Some(messages) = self.0.messages.as_ref().filter(|queue| queue.capacity() > FOR_QUESTIONS) {
            let _ = messages.try_send(message);
        }
    }
}

impl Channel {
    fn new(
        principal: Principal,
        audit: Arc<Audit>,
        question_timeout: Duration,
        is_direct: bool,
        messages: Option<mpsc::Sender<ClientMessage>>,
    ) -> Self {
        let execution = ExecutionId(own_host::mark(uuid::Uuid::now_v7().as_u128()));
        let (asked, questions) = (AtomicU32::new(0), OpenQuestions::default());
        Self { execution, principal, audit, question_timeout, asked, questions, is_direct, messages }
    }
}
