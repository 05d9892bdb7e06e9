//! One execution of a client's, as its requests meet it: whoever has a copy can wait for what comes of it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::principal::Owner;
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::ai_client::{Answer, Course, Followed, Message, Posed, Unasked, Watch};
use rmcp::model::{CallToolResult, ElicitRequest, InputRequest, InputRequests, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::super::ask;

/// One execution. It is cancelled when the last copy of this is dropped.
#[derive(Clone)]
pub(crate) struct Run(Arc<Shared>);

struct Shared {
    owner: Owner,
    execution: ExecutionId,
    begun: Instant,
    since: SystemTime,
    messages: tokio::sync::Mutex<mpsc::Receiver<Message>>,
    /// Questions that the client was told of by the answer to a request.
    open: Mutex<Open>,
    over: watch::Receiver<Option<Arc<Over>>>,
    watch: Watch,
    token: CancellationToken,
    _cancelling: DropGuard,
}

#[derive(Default)]
struct Open {
    last: usize,
    questions: BTreeMap<String, Asked>,
}

/// A question, as the client was told it, and where the answer goes.
struct Asked {
    request: InputRequest,
    until: Instant,
    reply: oneshot::Sender<Result<Answer, Unasked>>,
}

/// The final answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Over {
    /// Whether it was given up.
    pub(crate) cancelled: bool,
    pub(crate) begun: String,
    pub(crate) ended: String,
    pub(crate) result: CallToolResult,
}

/// What comes of a run next.
pub(crate) enum Step {
    Question(Posed),
    Progress(String),
    /// None if it broke.
    Over(Option<Arc<Over>>),
}

impl Run {
    /// Follows what `answering` does, which ends early once `token` is cancelled.
    pub(super) fn start(
        owner: Owner,
        followed: Followed,
        token: CancellationToken,
        answering: impl Future<Output = (CallToolResult, bool)> + Send + 'static,
    ) -> Self {
        let Followed { execution, messages, watch } = followed;
        let (tell, over) = watch::channel(None);
        let begun = SystemTime::now();
        let answering = async move {
            let (result, cancelled) = answering.await;
            let (begun, ended) = (in_words(begun), in_words(SystemTime::now()));
            tell.send_replace(Some(Arc::new(Over { cancelled, begun, ended, result })));
        };
        tokio::spawn(answering.in_current_span());
        Self(Arc::new(Shared {
            owner,
            execution,
            begun: Instant::now(),
            since: begun,
            messages: tokio::sync::Mutex::new(messages),
            open: Mutex::default(),
            over,
            watch,
            _cancelling: token.clone().drop_guard(),
            token,
        }))
    }

    pub(super) fn owner(&self) -> Owner {
        self.0.owner
    }

    pub(crate) fn execution(&self) -> ExecutionId {
        self.0.execution
    }

    /// Since it was asked for.
    pub(crate) fn age(&self) -> Duration {
        self.0.begun.elapsed()
    }

    /// When it was asked for.
    pub(super) fn begun(&self) -> String {
        in_words(self.0.since)
    }

    /// Ends it, whoever waits for it.
    pub(crate) fn cancel(&self) {
        self.0.token.cancel();
    }

    /// Several may wait at once: each gets the final answer, and one of them what is said before it.
    pub(crate) async fn next(&self) -> Step {
        tokio::select! {
            biased;
            message = self.message() => match message {
                Message::Question(posed) => Step::Question(posed),
                Message::Progress(words) => Step::Progress(words),
                Message::Passed(_) => Step::Progress(String::new()),
            },
            over = self.over() => Step::Over(over),
        }
    }

    /// The final answer, whatever else comes. None if it broke.
    pub(crate) fn over(&self) -> impl Future<Output = Option<Arc<Over>>> + use<> {
        let mut over = self.0.over.clone();
        async move { over.wait_for(Option::is_some).await.ok()?.clone() }
    }

    async fn message(&self) -> Message {
        let mut messages = self.0.messages.lock().await;
        loop {
            match messages.recv().await {
                Some(Message::Question(posed)) if posed.is_over() => {}
                // Only calls that an AI client makes itself are told of so.
                Some(Message::Passed(_)) => {}
                Some(message) => return message,
                None => std::future::pending().await,
            }
        }
    }

    /// What it is doing. None while it waits for a worker, or ends.
    pub(crate) async fn look(&self) -> Option<Course> {
        self.0.watch.look().await
    }

    /// Whether it waits for a worker.
    pub(crate) fn is_queued(&self) -> bool {
        !self.0.watch.has_begun()
    }

    /// Takes a question among those that the client answers in a request of its own.
    pub(super) fn open(&self, posed: Posed) {
        let Posed { question, until, answer } = posed;
        match ask::parameters(question) {
            Ok(parameters) => {
                let request = InputRequest::Elicitation(ElicitRequest::new(parameters));
                let mut open = self.open_questions();
                open.last += 1;
                let key = format!("question-{}", open.last);
                open.questions.insert(key, Asked { request, until, reply: answer });
            }
            Err(unasked) => drop(answer.send(Err(unasked))),
        }
    }

    /// What waits for the person, with all that was asked just now; and how long the most patient of it does.
    pub(super) fn asked(&self) -> Option<(InputRequests, Instant)> {
        if let Ok(mut messages) = self.0.messages.try_lock() {
            while let Ok(message) = messages.try_recv() {
                if let Message::Question(posed) = message {
                    self.open(posed);
                }
            }
        }
        let mut open = self.open_questions();
        open.questions.retain(|_, asked| !asked.reply.is_closed());
        let until = open.questions.values().map(|asked| asked.until).max()?;
        let requests = open.questions.iter().map(|(key, asked)| (key.clone(), asked.request.clone()));
        Some((requests.collect(), until))
    }

    /// Hands over what the person said. Others are still waited for.
    pub(super) fn answered(&self, responses: InputResponses) {
        let mut open = self.open_questions();
        for (key, said) in responses {
            if let Some(asked) = open.questions.remove(&key) {
                let _ = asked.reply.send(Ok(meaning(said)));
            }
        }
    }

    /// The same where whatever has no answer among these was let be.
    pub(super) fn answered_with(&self, keys: &[String], mut responses: InputResponses) {
        let left_out = keys.iter().filter(|key| !responses.contains_key(*key)).cloned().collect::<Vec<_>>();
        responses.retain(|key, _| keys.contains(key));
        self.answered(responses);
        let mut open = self.open_questions();
        for key in left_out {
            if let Some(asked) = open.questions.remove(&key) {
                let _ = asked.reply.send(Ok(Answer::Cancel));
            }
        }
    }

    fn open_questions(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock()
    }
}

fn meaning(said: Value) -> Answer {
    serde_json::from_value(said).map_or(Answer::Garbled, ask::answer)
}

pub(crate) fn in_words(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
