//! The life of a process that serves: it becomes ready, serves, drains, and ends.
//!
//! While it drains no run begins, and those that are under way come to their end and are answered. Then, or when their time
//! is up, everything ends.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What those who are told to come back are told to wait, at least.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// How long the answers of runs that were stopped may take to leave.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Where a process is in its life. Copies are the same one.
#[derive(Clone, Debug)]
pub struct Life(Arc<Phases>);

#[derive(Debug)]
struct Phases {
    started: Instant,
    /// No run begins any more.
    draining: CancellationToken,
    /// Runs that are under way are stopped.
    stopping: CancellationToken,
    /// Nothing is served any more.
    closing: CancellationToken,
    /// How long runs may take that are under way when it is to end.
    patience: Duration,
    /// When they are stopped, once it drains.
    until: Mutex<Option<Instant>>,
    /// Runs and requests that somebody waits for.
    owed: watch::Sender<usize>,
    runs: AtomicUsize,
    listening: watch::Sender<bool>,
    settled: AtomicBool,
    generation: AtomicU64,
}

/// Something that is under way: it is owed an answer until this is dropped.
#[derive(Debug)]
pub struct Owed {
    life: Life,
    is_run: bool,
}

impl Life {
    pub fn new(patience: Duration) -> Self {
        Self(Arc::new(Phases {
            started: Instant::now(),
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
            patience,
            until: Mutex::default(),
            owed: watch::Sender::new(0),
            runs: AtomicUsize::new(0),
            listening: watch::Sender::new(false),
            settled: AtomicBool::new(false),
            generation: AtomicU64::new(1),
        }))
    }

    /// No run begins once this is cancelled.
    pub fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }

    /// Runs that are under way are stopped once this is cancelled.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Nothing is served once this is cancelled.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    pub fn age(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Clients reach this process from now on.
    pub fn listens(&self) {
        self.0.listening.send_replace(true);
    }

    pub fn is_listening(&self) -> bool {
        *self.0.listening.borrow()
    }

    /// Ends once clients reach this process.
    pub async fn listening(&self) {
        // The sender lives as long as this does.
        let _ = self.0.listening.subscribe().wait_for(|listening| *listening).await;
    }

    /// Every engine has said how it sees this host.
    pub fn settle(&self) {
        self.0.settled.store(true, Ordering::Relaxed);
    }

    pub fn is_settled(&self) -> bool {
        self.0.settled.load(Ordering::Relaxed)
    }

    /// Which configuration is in force: the first, the second, and so on.
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Relaxed)
    }

    /// Another configuration is in force.
    pub fn reloaded(&self) {
        self.0.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// A run begins.
    pub fn run(&self) -> Owed {
        self.0.runs.fetch_add(1, Ordering::Relaxed);
        self.owed(true)
    }

    /// A request is heard.
    pub fn request(&self) -> Owed {
        self.owed(false)
    }

    fn owed(&self, is_run: bool) -> Owed {
        self.0.owed.send_modify(|owed| *owed += 1);
        Owed { life: self.clone(), is_run }
    }

    /// Runs that are under way.
    pub fn runs(&self) -> usize {
        self.0.runs.load(Ordering::Relaxed)
    }

    /// When to come back, for those who are turned away while it drains.
    pub fn retry_after(&self) -> Duration {
        let until = *self.0.until.lock();
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        // Most runs end long before the last moment.
        (left / 4).max(RETRY_MIN)
    }

    /// Lets what is under way come to its end, stops what does not, and closes.
    pub async fn drain(&self) {
        let until = Instant::now() + self.0.patience;
        *self.0.until.lock() = Some(until);
        self.0.draining.cancel();
        let runs = self.runs();
        tracing::info!("draining: {runs} runs are under way, and no other begins");
        let answered = async {
            let _ = self.0.owed.subscribe().wait_for(|owed| *owed == 0).await;
        };
        tokio::pin!(answered);
        if tokio::time::timeout_at(until, &mut answered).await.is_err() {
            let (runs, seconds) = (self.runs(), self.0.patience.as_secs_f32());
            tracing::warn!("{runs} runs have not ended within {seconds} s, and are stopped");
            self.0.stopping.cancel();
            let _ = tokio::time::timeout(ANSWERED_WITHIN, answered).await;
        }
        self.close();
    }

    /// At once.
    pub fn close(&self) {
        self.0.draining.cancel();
        self.0.stopping.cancel();
        self.0.closing.cancel();
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if self.is_run {
            self.life.0.runs.fetch_sub(1, Ordering::Relaxed);
        }
        self.life.0.owed.send_modify(|owed| *owed -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draining(life: &Life) -> tokio::task::JoinHandle<()> {
        let life = life.clone();
        tokio::spawn(async move { life.drain().await })
    }

    #[tokio::test]
    async fn what_is_under_way_is_waited_for_and_nothing_is_stopped() {
        let life = Life::new(Duration::from_secs(3_600));
        let (run, request) = (life.run(), life.request());
        let draining = draining(&life);
        life.draining().cancelled().await;
        drop(run);
        tokio::task::yield_now().await;
        assert!(!draining.is_finished() && life.runs() == 0, "the request is not answered");
        assert!(!life.stopping().is_cancelled());
        drop(request);
        draining.await.expect("a task");
        assert!(life.closing().is_cancelled());
    }

    #[tokio::test]
    async fn what_does_not_end_is_stopped_and_may_still_answer() {
        let life = Life::new(Duration::from_millis(20));
        let run = life.run();
        let draining = draining(&life);
        life.stopping().cancelled().await;
        assert!(!life.closing().is_cancelled(), "its answer is on its way");
        drop(run);
        draining.await.expect("a task");
        assert!(life.closing().is_cancelled());
    }

    #[tokio::test]
    async fn those_who_are_turned_away_come_back_later_the_longer_it_may_take() {
        let life = Life::new(Duration::from_secs(40));
        let _run = life.run();
        assert_eq!(life.retry_after(), RETRY_MIN);
        let draining = draining(&life);
        life.draining().cancelled().await;
        assert!((9..=10).contains(&life.retry_after().as_secs()));
        draining.abort();
    }
}
