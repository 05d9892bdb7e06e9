//! Lifecycle of the supervisor process: ready, serving, draining, closed.
//!
//! While the process drains, no run begins, and runs in flight may end and be answered. When all runs and requests have been
//! answered, or shortly after the drain timeout, the process first takes no further connections and then closes.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long the process waits, after the drain timeout, until the results of the cancelled runs are sent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the process serves connections after it takes no further ones. In this time, it accepts those that were made just
/// before, and answers their requests.
const LAST_CONNECTIONS: Duration = Duration::from_millis(100);

/// The lifecycle of this process. Clones refer to the same lifecycle.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<LifecycleInner>);

#[derive(Debug)]
struct LifecycleInner {
    started: Instant,
    /// Cancelled when the process begins to drain: no run begins any more.
    draining: CancellationToken,
    /// Cancelled when the drain timeout has passed: the runs that are still in flight are then cancelled.
    stopping: CancellationToken,
    /// Cancelled when the drain has ended: the process takes no connection of AI clients any more.
    refusing: CancellationToken,
    /// Cancelled when the process stops serving requests of AI clients.
    closing: CancellationToken,
    /// How long runs in flight may take after the process has begun to drain.
    drain_timeout: Duration,
    /// The time at which runs in flight will be cancelled; `None` as long as the process does not drain.
    drain_deadline: Mutex<Option<Instant>>,
    /// The number of runs and requests that are not answered yet.
    in_flight: watch::Sender<usize>,
    runs_in_flight: AtomicUsize,
    listening: watch::Sender<bool>,
    /// Whether AI clients make connections to this process, each for some requests.
    accepts_connections: AtomicBool,
    initialized: AtomicBool,
    config_generation: AtomicU64,
}

/// Guard that counts one run or request as in flight until it is dropped.
#[derive(Debug)]
pub struct InFlightGuard {
    lifecycle: Lifecycle,
    is_run: bool,
}

impl Lifecycle {
    pub fn new(drain_timeout: Duration) -> Self {
        Self(Arc::new(LifecycleInner {
            started: Instant::now(),
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            refusing: CancellationToken::new(),
            closing: CancellationToken::new(),
            drain_timeout,
            drain_deadline: Mutex::default(),
            in_flight: watch::Sender::new(0),
            runs_in_flight: AtomicUsize::new(0),
            listening: watch::Sender::new(false),
            accepts_connections: AtomicBool::new(false),
            initialized: AtomicBool::new(false),
            config_generation: AtomicU64::new(1),
        }))
    }

    /// Returns the token that is cancelled when the process begins to drain. No run begins after that.
    pub fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }

    /// Returns the token that is cancelled when runs in flight must stop because the drain timeout has passed.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Returns the token that is cancelled when the process takes no connection of AI clients any more. Those that it has are
    /// served until it closes.
    pub fn refusing(&self) -> &CancellationToken {
        &self.0.refusing
    }

    /// Returns the token that is cancelled when the process stops serving requests of AI clients.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    pub fn age(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Records that AI clients can reach this process from now on.
    pub fn set_listening(&self) {
        self.0.listening.send_replace(true);
    }

    /// Records that AI clients make connections to this process. A drain then ends with [`Self::refusing`].
    pub fn set_accepts_connections(&self) {
        self.0.accepts_connections.store(true, Ordering::Relaxed);
    }

    pub fn is_listening(&self) -> bool {
        *self.0.listening.borrow()
    }

    /// Waits until AI clients can reach this process.
    pub async fn wait_listening(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.listening.subscribe().wait_for(|listening| *listening).await;
    }

    /// Records that every language engine has reported which protections of the sandbox this host provides.
    pub fn set_initialized(&self) {
        self.0.initialized.store(true, Ordering::Relaxed);
    }

    pub fn is_initialized(&self) -> bool {
        self.0.initialized.load(Ordering::Relaxed)
    }

    /// Returns the number of the active configuration: 1 at the start, one more after each reload.
    pub fn config_generation(&self) -> u64 {
        self.0.config_generation.load(Ordering::Relaxed)
    }

    /// Increments the number of the active configuration, after a reload has activated another one.
    pub fn record_reload(&self) {
        self.0.config_generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a run as in flight until the returned guard is dropped.
    pub fn begin_run(&self) -> InFlightGuard {
        self.0.runs_in_flight.fetch_add(1, Ordering::Relaxed);
        self.guard(true)
    }

    /// Counts a request of an AI client as in flight until the returned guard is dropped, or all requests of a front, which
    /// counts them itself.
    pub fn begin_request(&self) -> InFlightGuard {
        self.guard(false)
    }

    fn guard(&self, is_run: bool) -> InFlightGuard {
        self.0.in_flight.send_modify(|in_flight| *in_flight += 1);
        InFlightGuard { lifecycle: self.clone(), is_run }
    }

    /// Returns the number of runs in flight.
    pub fn runs_in_flight(&self) -> usize {
        self.0.runs_in_flight.load(Ordering::Relaxed)
    }

    /// Returns the time until the runs in flight are cancelled; zero if the process does not drain.
    pub fn drain_time_left(&self) -> Duration {
        let deadline = *self.0.drain_deadline.lock();
        deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits until no run and no request is in flight.
    pub async fn all_answered(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.in_flight.subscribe().wait_for(|in_flight| *in_flight == 0).await;
    }

    /// Waits until no run is in flight.
    pub async fn runs_ended(&self) {
        let _ = self.0.in_flight.subscribe().wait_for(|_| self.runs_in_flight() == 0).await;
    }

    /// Drains the process and closes it: waits until runs and requests in flight are answered, and cancels the runs
    /// that exceed the drain timeout.
    pub async fn drain(&self) {
        let deadline = Instant::now() + self.0.drain_timeout;
        *self.0.drain_deadline.lock() = Some(deadline);
        self.0.draining.cancel();
        let runs = self.runs_in_flight();
        tracing::info!("draining: {runs} runs are under way, and no other begins");
        let all_answered = self.all_answered();
        tokio::pin!(all_answered);
        if tokio::time::timeout_at(deadline, &mut all_answered).await.is_err() {
            let (runs, seconds) = (self.runs_in_flight(), self.0.drain_timeout.as_secs_f32());
            tracing::warn!("{runs} runs have not ended within {seconds} s, and are stopped");
            self.0.stopping.cancel();
            let _ = tokio::time::timeout(ANSWER_TIMEOUT, all_answered).await;
        }
        if self.0.accepts_connections.load(Ordering::Relaxed) {
            self.0.refusing.cancel();
            tokio::time::sleep(LAST_CONNECTIONS).await;
            let _ = tokio::time::timeout(ANSWER_TIMEOUT, self.all_answered()).await;
        }
        self.close();
    }

    /// Closes the process at once: no run begins any more, the runs in flight are cancelled, and no more requests are
    /// served.
    pub fn close(&self) {
        self.0.draining.cancel();
        self.0.stopping.cancel();
        self.0.refusing.cancel();
        self.0.closing.cancel();
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if self.is_run {
            self.lifecycle.0.runs_in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        self.lifecycle.0.in_flight.send_modify(|in_flight| *in_flight -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draining(lifecycle: &Lifecycle) -> tokio::task::JoinHandle<()> {
        let lifecycle = lifecycle.clone();
        tokio::spawn(async move { lifecycle.drain().await })
    }

    #[tokio::test]
    async fn what_is_under_way_is_waited_for_and_nothing_is_stopped() {
        let lifecycle = Lifecycle::new(Duration::from_secs(3_600));
        lifecycle.set_accepts_connections();
        let (run, request) = (lifecycle.begin_run(), lifecycle.begin_request());
        let draining = draining(&lifecycle);
        lifecycle.draining().cancelled().await;
        drop(run);
        tokio::task::yield_now().await;
        assert!(!draining.is_finished() && lifecycle.runs_in_flight() == 0, "the request is not answered");
        assert!(!lifecycle.stopping().is_cancelled() && !lifecycle.refusing().is_cancelled());
        drop(request);
        lifecycle.refusing().cancelled().await;
        assert!(!lifecycle.closing().is_cancelled(), "connections that were made before are served");
        draining.await.expect("a task");
        assert!(lifecycle.closing().is_cancelled());
    }

    #[tokio::test]
    async fn what_does_not_end_is_stopped_and_may_still_answer() {
        let lifecycle = Lifecycle::new(Duration::from_millis(20));
        let run = lifecycle.begin_run();
        let draining = draining(&lifecycle);
        lifecycle.stopping().cancelled().await;
        assert!(!lifecycle.closing().is_cancelled(), "its answer is on its way");
        drop(run);
        draining.await.expect("a task");
        assert!(lifecycle.closing().is_cancelled());
    }
}
