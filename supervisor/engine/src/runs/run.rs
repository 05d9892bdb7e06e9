//! One execution of a client's, as its requests meet it: whoever has a copy can wait for what comes of it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::principal::Owner;
use lockhouse_messages::{Answer, EndedRun, OpenQuestion, RunState, RunView, Unasked};
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::ai_client::{Followed, Message, Watch};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::questions::Questions;

/// One execution. It is cancelled when the last copy of this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Run(Arc<Shared>);

/// The same, without keeping it from being cancelled.
#[derive(Clone, Debug)]
pub(super) struct WeakRun(Weak<Shared>);

#[derive(Debug)]
struct Shared {
    owner: Owner,
    execution: ExecutionId,
    begun: Instant,
    since: SystemTime,
    messages: tokio::sync::Mutex<mpsc::Receiver<Message>>,
    questions: Mutex<Questions>,
    over: watch::Receiver<Option<Arc<EndedRun>>>,
    watch: Watch,
    token: CancellationToken,
    _cancelling: DropGuard,
}

/// What comes of a run next.
pub(crate) enum Step {
    Question(OpenQuestion),
    Progress(String),
    /// None if it broke.
    Over(Option<Arc<EndedRun>>),
}

impl Run {
    /// Follows what `answering` does, which ends early once `token` is cancelled.
    pub(super) fn start(
        owner: Owner,
        followed: Followed,
        token: CancellationToken,
        answering: impl Future<Output = EndedRun> + Send + 'static,
    ) -> Self {
        let Followed { execution, messages, watch } = followed;
        let (tell, over) = watch::channel(None);
        let since = SystemTime::now();
        let answering = async move {
            let ended = answering.await;
            let (begun, now) = (rfc3339(since), rfc3339(SystemTime::now()));
            tell.send_replace(Some(Arc::new(EndedRun { begun, ended: now, ..ended })));
        };
        tokio::spawn(answering.in_current_span());
        Self(Arc::new(Shared {
            owner,
            execution,
            begun: Instant::now(),
            since,
            messages: tokio::sync::Mutex::new(messages),
            questions: Mutex::default(),
            over,
            watch,
            _cancelling: token.clone().drop_guard(),
            token,
        }))
    }

    pub(crate) fn owner(&self) -> Owner {
        self.0.owner
    }

    pub(crate) fn execution(&self) -> ExecutionId {
        self.0.execution
    }

    pub(super) fn downgrade(&self) -> WeakRun {
        WeakRun(Arc::downgrade(&self.0))
    }

    /// Ends it, whoever waits for it.
    pub(crate) fn cancel(&self) {
        self.0.token.cancel();
    }

    /// Several may wait at once: each gets the final answer, and one of them what is said before it.
    pub(crate) async fn next(&self) -> Step {
        tokio::select! {
            biased;
            step = self.message() => step,
            over = self.over() => Step::Over(over),
        }
    }

    /// The final answer, whatever else comes. None if it broke.
    pub(crate) fn over(&self) -> impl Future<Output = Option<Arc<EndedRun>>> + use<> {
        let mut over = self.0.over.clone();
        async move { over.wait_for(Option::is_some).await.ok()?.clone() }
    }

    async fn message(&self) -> Step {
        let mut messages = self.0.messages.lock().await;
        loop {
            match messages.recv().await {
                Some(Message::Question(posed)) => {
                    if let Some(question) = self.0.questions.lock().open(posed) {
                        return Step::Question(question);
                    }
                }
                Some(Message::Progress(words)) => return Step::Progress(words),
                // Only calls that an AI client makes itself are told of so.
                Some(Message::Passed(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// What it is doing.
    pub(crate) async fn view(&self) -> RunView {
        let state = match self.0.watch.look().await {
            Some(course) => RunState::Running(course),
            None if self.0.watch.has_begun() => RunState::Silent,
            None => RunState::Queued,
        };
        RunView { execution: self.0.execution, age: self.age(), begun: rfc3339(self.0.since), state }
    }

    fn age(&self) -> Duration {
        self.0.begun.elapsed()
    }

    /// What waits for the person, with all that was asked just now.
    pub(crate) fn questions(&self) -> Vec<OpenQuestion> {
        let mut questions = self.0.questions.lock();
        if let Ok(mut messages) = self.0.messages.try_lock() {
            while let Ok(message) = messages.try_recv() {
                if let Message::Question(posed) = message {
                    questions.open(posed);
                }
            }
        }
        questions.all()
    }

    /// Hands over what the person said. Other questions are still open.
    pub(crate) fn answer(&self, key: &str, answer: Result<Answer, Unasked>) {
        self.0.questions.lock().answer(key, answer);
    }
}

impl WeakRun {
    pub(super) fn upgrade(&self) -> Option<Run> {
        self.0.upgrade().map(Run)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
