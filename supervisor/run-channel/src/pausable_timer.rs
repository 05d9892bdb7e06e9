//! A timer that pauses while a question to the user is open, and the list of an execution's open questions.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::UserWait;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// The open questions of one execution: questions that users have not answered yet. While a question is open, the
/// timers of the execution pause.
#[derive(Clone, Debug)]
pub struct OpenQuestions(Arc<watch::Sender<Questions>>);

#[derive(Debug, Default)]
struct Questions {
    last: u64,
    /// The subject of each open question (text such as "a question of server NAME"), and the time at which the question
    /// was asked. The key is the number of the question.
    open: BTreeMap<u64, (String, Instant)>,
}

impl Default for OpenQuestions {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Questions::default())))
    }
}

impl OpenQuestions {
    /// Adds an open question; `about` is its subject. The question stays open until the returned guard is dropped.
    pub fn open(&self, about: String) -> OpenQuestionGuard {
        let mut number = 0;
        self.0.send_modify(|questions| {
            questions.last += 1;
            number = questions.last;
            questions.open.insert(number, (about, Instant::now()));
        });
        OpenQuestionGuard { questions: self.0.clone(), number }
    }

    /// Returns the question that has been open for the longest time; `None` if no question is open.
    pub fn oldest(&self) -> Option<UserWait> {
        let questions = self.0.borrow();
        let (about, since) = questions.open.values().next()?;
        Some(UserWait { reason: about.clone(), since: since.elapsed() })
    }

    /// Returns a timer that expires after `limit`, and pauses while a question of this execution is open.
    pub fn timer(&self, limit: Duration) -> PausableTimer {
        PausableTimer::new(limit, Some(self.0.subscribe()))
    }
}

/// Guard that keeps a question to the user open. Dropping it ends the question, and the execution's timers continue.
#[derive(Debug)]
pub struct OpenQuestionGuard {
    questions: Arc<watch::Sender<Questions>>,
    number: u64,
}

impl Drop for OpenQuestionGuard {
    fn drop(&mut self) {
        self.questions.send_modify(|questions| drop(questions.open.remove(&self.number)));
    }
}

/// A timer that expires after a time limit. Time during which a question to the user is open does not count.
#[derive(Debug)]
pub struct PausableTimer {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    /// When the timer was paused; `None` while the timer runs.
    stopped: Option<Instant>,
    /// The open questions during which the timer pauses; `None` if the timer never pauses.
    open: Option<watch::Receiver<Questions>>,
}

impl PausableTimer {
    fn new(limit: Duration, open: Option<watch::Receiver<Questions>>) -> Self {
        Self { limit, deadline: Box::pin(sleep(limit)), stopped: None, open }
    }

    /// Returns a timer that never pauses.
    pub fn unpausable(limit: Duration) -> Self {
        Self::new(limit, None)
    }

    /// Restarts the timer with its full time limit. A paused timer remains paused.
    pub fn restart(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.limit);
        self.stopped = self.stopped.map(|_| Instant::now());
    }

    /// Waits until the timer expires, and returns its time limit. If the future is dropped, a new call continues to
    /// wait for the same end.
    pub async fn expired(&mut self) -> Duration {
        loop {
            let Some(open) = &mut self.open else {
                self.deadline.as_mut().await;
                return self.limit;
            };
            let is_paused = !open.borrow_and_update().open.is_empty();
            match self.stopped {
                None if is_paused => self.stopped = Some(Instant::now()),
                Some(since) if !is_paused => {
                    let later = self.deadline.deadline() + since.elapsed();
                    self.deadline.as_mut().reset(later);
                    self.stopped = None;
                }
                _ => {}
            }
            tokio::select! {
                () = self.deadline.as_mut(), if !is_paused => return self.limit,
                changed = open.changed() => if changed.is_err() {
                    self.open = None;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn waiting_for_an_answer_does_not_count_towards_the_timeout() {
        let questions = OpenQuestions::default();
        let begun = Instant::now();
        let mut timer = questions.timer(TENTH * 2);
        let asking = async {
            sleep(TENTH).await;
            let open = questions.open("a".into());
            let later = questions.open("b".into());
            sleep(TENTH * 5).await;
            let oldest = questions.oldest().expect("one is open");
            assert!(oldest.reason == "a" && oldest.since >= TENTH * 5, "{oldest:?}");
            drop((open, later));
            assert_eq!(questions.oldest(), None);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = timer.expired() => {}
            () = asking => {}
        }
        assert!(begun.elapsed() >= TENTH * 7, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_clock_that_is_restarted_has_its_whole_limit() {
        let begun = Instant::now();
        let mut timer = PausableTimer::unpausable(TENTH * 2);
        sleep(TENTH).await;
        timer.restart();
        timer.expired().await;
        assert!(begun.elapsed() >= TENTH * 3, "{:?}", begun.elapsed());
    }
}
