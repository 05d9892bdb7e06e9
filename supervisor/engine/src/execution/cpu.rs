//! Waits until a worker has used so much CPU time. Nothing tells us: somebody has to look at the clock of its process.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lockhouse_pool::WorkerProcess;

/// The sooner it is looked at how much a run has used, the less of it is left; never more often than this.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(20);
/// How often it is looked at how much of its credit a run has used, at least.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// From the signal that its CPU time is used up to SIGKILL, in CPU time.
const GRACE: Duration = Duration::from_secs(1);

static CORES: LazyLock<u32> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32));

/// The CPU time of a run in a session, where the kernel's limit is one for all runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuBudget {
    /// What earlier runs had used, and this one's limit.
    before: Duration,
    limit: Duration,
}

impl CpuBudget {
    pub(super) fn new(before: Duration, limit: Duration) -> Self {
        Self { before, limit }
    }

    /// What of a process's CPU time this run has used.
    pub(super) fn used(&self, in_all: Duration) -> Duration {
        in_all.saturating_sub(self.before)
    }

    /// Waits until a run has used its limit. Never ends where the kernel keeps it.
    pub(super) async fn used_up(budget: Option<Self>, process: &WorkerProcess) {
        Self::passed(budget, Duration::ZERO, process).await;
    }

    /// Waits until a run has used its limit, and what it had to stop in.
    pub(super) async fn grace_used_up(budget: Option<Self>, process: &WorkerProcess) {
        Self::passed(budget, GRACE, process).await;
    }

    async fn passed(budget: Option<Self>, grace: Duration, process: &WorkerProcess) {
        let Some(Self { before, limit }) = budget else { return std::future::pending().await };
        has_used(before + limit + grace, process, |left| (left / *CORES).max(LOOK_AT_LEAST_EVERY)).await;
    }
}

/// Waits until a run that gives way to all other work afterwards has used its credit. Never ends for one that never gives way.
pub(super) async fn credit_used_up(credit: Option<Duration>, process: &WorkerProcess) {
    let used = |credit| process.cpu_time().map(|before| before + credit);
    let Some(cpu) = credit.and_then(used) else { return std::future::pending().await };
    let started = Instant::now();
    // A worker that waits is looked at less and less often.
    let pause = |left: Duration| left.max(LOOK_AT_MOST_EVERY.min(started.elapsed() / 4));
    has_used(cpu, process, pause).await;
}

/// Looks again and again, after a pause that depends on what is left. Never ends once the process is gone: that is heard of
/// elsewhere.
async fn has_used(cpu: Duration, process: &WorkerProcess, pause: impl Fn(Duration) -> Duration) {
    while let Some(used) = process.cpu_time() {
        let left = cpu.saturating_sub(used);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(pause(left)).await;
    }
    std::future::pending().await
}
