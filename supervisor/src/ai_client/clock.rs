//! A clock that stands still while a person is asked.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// The questions of one execution that people have not answered yet. Its clocks stand still while there are any.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestions(Arc<watch::Sender<usize>>);

impl Default for OpenQuestions {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl OpenQuestions {
    /// Counts one for as long as what comes back is kept.
    pub(crate) fn open(&self) -> Open {
        self.0.send_modify(|open| *open += 1);
        Open(self.0.clone())
    }

    /// A clock that stands still while a person is asked on behalf of this execution.
    pub(crate) fn clock(&self, limit: Duration) -> Clock {
        Clock::new(limit, Some(self.0.subscribe()))
    }
}

/// A question that is open.
#[derive(Debug)]
pub(crate) struct Open(Arc<watch::Sender<usize>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Runs for a limit, without the time during which questions are open.
#[derive(Debug)]
pub(crate) struct Clock {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    /// Since when it stands still.
    stopped: Option<Instant>,
    /// How many questions are open. None: it never stands still.
    open: Option<watch::Receiver<usize>>,
}

impl Clock {
    fn new(limit: Duration, open: Option<watch::Receiver<usize>>) -> Self {
        Self { limit, deadline: Box::pin(sleep(limit)), stopped: None, open }
    }

    /// One that nothing stops.
    pub(crate) fn plain(limit: Duration) -> Self {
        Self::new(limit, None)
    }

    /// Starts again from its limit.
    pub(crate) fn restart(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.limit);
        self.stopped = self.stopped.map(|_| Instant::now());
    }

    /// When the limit is used up: how long it was. It may be waited for again and again.
    pub(crate) async fn ends(&mut self) -> Duration {
        loop {
            let Some(open) = &mut self.open else {
                self.deadline.as_mut().await;
                return self.limit;
            };
            let stands = *open.borrow_and_update() > 0;
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
        let (open, receiver) = watch::channel(0);
        let begun = Instant::now();
        let mut clock = Clock::new(TENTH * 2, Some(receiver));
        let asking = async {
            sleep(TENTH).await;
            open.send_replace(1);
            sleep(TENTH * 5).await;
            open.send_replace(0);
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
