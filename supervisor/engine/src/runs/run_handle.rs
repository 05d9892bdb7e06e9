//! A handle to one run, through which any number of requests can wait for its questions, its progress and its answer.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_messages::{
    Answer, AskError, FinishedRun, OpenQuestion, Owner, RunAnswer, RunState, RunStatus, RunView,
};
use lockhouse_protocol::ExecutionId;
use lockhouse_run_channel::{ClientMessage, ProgressHandle, RunFollower};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::execution::RenderedAnswer;
use crate::pending_questions::PendingQuestions;

/// A handle to one run. The run is cancelled when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct RunHandle(Arc<RunHandleInner>);

/// A weak handle to a run. A weak handle does not keep the run alive.
#[derive(Clone, Debug)]
pub(super) struct WeakRunHandle(Weak<RunHandleInner>);

#[derive(Debug)]
struct RunHandleInner {
    owner: Owner,
    execution: ExecutionId,
    started_at: Instant,
    started_at_wall: SystemTime,
    /// One of the requests that follow the run receives the next message.
    messages: tokio::sync::Mutex<mpsc::Receiver<ClientMessage>>,
    following: Mutex<Following>,
    finished: watch::Receiver<Option<Arc<FinishedRun>>>,
    progress: ProgressHandle,
    token: CancellationToken,
    _cancelling: DropGuard,
}

/// The requests that follow a run, and the questions that they have received.
#[derive(Debug, Default)]
struct Following {
    questions: PendingQuestions,
    /// The number of requests that follow the run now, and of all that have begun to follow it since it started.
    now: usize,
    total: u64,
}

/// Counts a request that follows a run, until the guard is dropped.
pub(crate) struct FollowerGuard<'a>(&'a RunHandle);

impl Drop for FollowerGuard<'_> {
    fn drop(&mut self) {
        self.0.0.following.lock().now -= 1;
    }
}

/// An update that a request receives about the run that it follows.
pub(crate) enum RunUpdate {
    Question(OpenQuestion),
    Progress(String),
    /// The run has ended, with its final answer. `None` if the task of the run failed.
    Finished(Option<Arc<FinishedRun>>),
}

impl RunHandle {
    /// Starts a task that polls `completion`, the future that executes the run. `follower` receives the questions and
    /// the progress of the run. Cancelling `token` ends the run early.
    pub(super) fn start(
        owner: Owner,
        follower: RunFollower,
        token: CancellationToken,
        completion: impl Future<Output = RenderedAnswer> + Send + 'static,
    ) -> Self {
        let RunFollower { execution, messages, progress_handle } = follower;
        let (tell, finished) = watch::channel(None);
        let started_at_wall = SystemTime::now();
        let completion = async move {
            let rendered = completion.await;
            tell.send_replace(Some(Arc::new(finished_run(execution, started_at_wall, rendered))));
        };
        tokio::spawn(completion.in_current_span());
        Self(Arc::new(RunHandleInner {
            owner,
            execution,
            started_at: Instant::now(),
            started_at_wall,
            messages: tokio::sync::Mutex::new(messages),
            following: Mutex::default(),
            finished,
            progress: progress_handle,
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

    pub(super) fn downgrade(&self) -> WeakRunHandle {
        WeakRunHandle(Arc::downgrade(&self.0))
    }

    /// Cancels the run, even if other requests follow it.
    pub(crate) fn cancel(&self) {
        self.0.token.cancel();
    }

    /// Counts a request that follows the run, until the guard is dropped.
    pub(crate) fn count_follower(&self) -> FollowerGuard<'_> {
        let mut following = self.0.following.lock();
        following.now += 1;
        following.total += 1;
        FollowerGuard(self)
    }

    /// Waits for the time `abandoned` in the background, and then cancels the run if no request follows it
    /// and none has begun to follow it in the meantime. If `abandoned` is zero, cancels the run at once.
    pub(crate) fn end_if_abandoned(&self, abandoned: Duration) {
        if abandoned.is_zero() {
            return self.cancel();
        }
        let (run, total) = (self.downgrade(), self.0.following.lock().total);
        tokio::spawn(async move {
            tokio::time::sleep(abandoned).await;
            let Some(run) = run.upgrade() else { return };
            let is_abandoned = {
                let following = run.0.following.lock();
                following.total == total && following.now == 0
            };
            if is_abandoned {
                run.cancel();
            }
        });
    }

    /// Waits for the next question or progress message of the run, or for its final answer. Several requests may wait
    /// at once: each question or progress message goes to one of them, and the final answer to all.
    pub(crate) async fn next(&self) -> RunUpdate {
        tokio::select! {
            biased;
            step = self.message() => step,
            finished = self.finished() => RunUpdate::Finished(finished),
        }
    }

    /// Waits for the final answer of the run, and ignores questions and progress. Returns `None` if the task of the
    /// run failed.
    pub(crate) fn finished(&self) -> impl Future<Output = Option<Arc<FinishedRun>>> + use<> {
        let mut finished = self.0.finished.clone();
        async move { finished.wait_for(Option::is_some).await.ok()?.clone() }
    }

    /// Returns the result of this run for the case that its task fails and leaves no answer.
    pub(super) fn failed(&self) -> FinishedRun {
        let answer = RunAnswer::without_run("InvalidRequest", "the execution failed inside Lockhouse");
        let rendered = RenderedAnswer { answer, files: Vec::new() };
        finished_run(self.0.execution, self.0.started_at_wall, rendered)
    }

    async fn message(&self) -> RunUpdate {
        let mut messages = self.0.messages.lock().await;
        loop {
            match messages.recv().await {
                Some(ClientMessage::Question(pending)) => {
                    if let Some(question) = self.0.following.lock().questions.open(pending) {
                        return RunUpdate::Question(question);
                    }
                }
                Some(ClientMessage::Progress(message)) => return RunUpdate::Progress(message),
                // Forwarded notifications belong to direct calls only.
                Some(ClientMessage::Forwarded(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the current state and progress of the run.
    pub(crate) async fn view(&self) -> RunView {
        let state = match self.0.progress.request().await {
            Some(progress) => RunState::Running(progress),
            None if self.0.progress.has_started() => RunState::Ending,
            None => RunState::Queued,
        };
        RunView {
            execution: self.0.execution,
            age: self.0.started_at.elapsed(),
            begun: rfc3339(self.0.started_at_wall),
            state,
        }
    }

    /// Returns all pending questions of the run, including those that have just arrived.
    pub(crate) fn questions(&self) -> Vec<OpenQuestion> {
        let questions = &mut self.0.following.lock().questions;
        if let Ok(mut messages) = self.0.messages.try_lock() {
            while let Ok(message) = messages.try_recv() {
                if let ClientMessage::Question(pending) = message {
                    questions.open(pending);
                }
            }
        }
        questions.all()
    }

    /// Passes the user's answer to the pending question with this key. An `Err` tells why the user could not be asked.
    pub(crate) fn answer(&self, key: &str, answer: Result<Answer, AskError>) {
        self.0.following.lock().questions.answer(key, answer);
    }
}

impl WeakRunHandle {
    pub(super) fn upgrade(&self) -> Option<RunHandle> {
        self.0.upgrade().map(RunHandle)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Returns the result of a run that ends now.
fn finished_run(execution: ExecutionId, started_at: SystemTime, rendered: RenderedAnswer) -> FinishedRun {
    let RenderedAnswer { answer, files } = rendered;
    let (begun, ended) = (rfc3339(started_at), rfc3339(SystemTime::now()));
    FinishedRun { execution, cancelled: answer.status == RunStatus::Cancelled, begun, ended, answer, files }
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
