//! A clock that stands still while a person is asked, and what the person is asked.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::PersonWait;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// The questions of one execution that people have not answered yet. Its clocks stand still while there are any.
#[derive(Clone, Debug)]
pub struct OpenQuestions(Arc<watch::Sender<Questions>>);

#[derive(Debug, Default)]
struct Questions {
    last: u64,
    /// What each is about, and since when it is open.
    open: BTreeMap<u64, (String, Instant)>,
}

impl Default for OpenQuestions {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Questions::default())))
    }
}

impl OpenQuestions {
    /// A question about this is open for as long as what comes back is kept.
    pub fn open(&self, about: String) -> Open {
        let mut number = 0;
        self.0.send_modify(|questions| {
            questions.last += 1;
            number = questions.last;
            questions.open.insert(number, (about, Instant::now()));
        });
        Open { questions: self.0.clone(), number }
    }

    /// The question that is open for the longest time.
    pub fn oldest(&self) -> Option<PersonWait> {
        let questions = self.0.borrow();
        let (about, since) = questions.open.values().next()?;
        Some(PersonWait { about: about.clone(), since: since.elapsed() })
    }

    /// A clock that stands still while a person is asked on behalf of this execution.
    pub fn clock(&self, limit: Duration) -> Clock {
        Clock::new(limit, Some(self.0.subscribe()))
    }
}

/// A question that is open.
#[derive(Debug)]
pub struct Open {
    questions: Arc<watch::Sender<Questions>>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.questions.send_modify(|questions| drop(questions.open.remove(&self.number)));
    }
}

/// Runs for a limit, without the time during which questions are open.
#[derive(Debug)]
pub struct Clock {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    /// Since when it stands still.
    stopped: Option<Instant>,
    /// The questions that are open. None: it never stands still.
    open: Option<watch::Receiver<Questions>>,
}

impl Clock {
    fn new(limit: Duration, open: Option<watch::Receiver<Questions>>) -> Self {
        Self { limit, deadline: Box::pin(sleep(limit)), stopped: None, open }
    }

    /// One that nothing stops.
    pub fn plain(limit: Duration) -> Self {
        Self::new(limit, None)
    }

    /// Starts again from its limit.
    pub fn restart(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.limit);
        self.stopped = self.stopped.map(|_| Instant::now());
    }

    /// When the limit is used up: how long it was. It may be waited for again and again.
    pub async fn ends(&mut self) -> Duration {
        loop {
            let Some(open) = &mut self.open else {
                self.deadline.as_mut().await;
                return self.limit;
            };
            let stands = !open.borrow_and_update().open.is_empty();
            match self.stopped {
                None if stands => self.stopped = Some(Instant::now()),
                Some(since) if !stands => {
                    let later = self.deadline.deadline() + since.elapsed();
                    self.deadline.as_mut().reset(later);
                    self.stopped = None;
                }
                _ => {}
            }
            tokio::select! {
                () = self.deadline.as_mut(), if !stands => return self.limit,
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
    async fn the_time_of_a_question_does_not_count() {
        let questions = OpenQuestions::default();
        let begun = Instant::now();
        let mut clock = questions.clock(TENTH * 2);
        let asking = async {
            sleep(TENTH).await;
            let open = questions.open("a".into());
            let later = questions.open("b".into());
            sleep(TENTH * 5).await;
            let oldest = questions.oldest().expect("one is open");
            assert!(oldest.about == "a" && oldest.since >= TENTH * 5, "{oldest:?}");
            drop((open, later));
            assert_eq!(questions.oldest(), None);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = clock.ends() => {}
            () = asking => {}
        }
        assert!(begun.elapsed() >= TENTH * 7, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_clock_that_is_restarted_has_its_whole_limit() {
        let begun = Instant::now();
        let mut clock = Clock::plain(TENTH * 2);
        sleep(TENTH).await;
        clock.restart();
        clock.ends().await;
        assert!(begun.elapsed() >= TENTH * 3, "{:?}", begun.elapsed());
    }
}
