//! Waits until a worker has used a given amount of CPU time. The kernel has no event for that, so the CPU clock of
//! the worker process is polled.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lockhouse_pool::WorkerProcess;

/// Minimum interval between two reads of a worker's CPU clock by [`CpuBudget`]. The interval becomes shorter as the run
/// approaches its CPU limit.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(20);
/// Maximum interval between two reads of a worker's CPU clock while the run still has CPU credit.
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(100);
/// CPU time that a run may use between SIGXCPU at its CPU limit and SIGKILL.
const CPU_GRACE: Duration = Duration::from_secs(1);

static CORES: LazyLock<u32> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32));

/// The CPU limit of one run in a session. The kernel's own limit covers all runs of the session together, so the
/// supervisor enforces the limit of the single run.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuBudget {
    /// CPU time that earlier runs of the session have used.
    before: Duration,
    /// CPU time that this run may use.
    limit: Duration,
}

impl CpuBudget {
    pub(super) fn new(before: Duration, limit: Duration) -> Self {
        Self { before, limit }
    }

    /// Returns the CPU time of this run, given the CPU time `total` of the worker process.
    pub(super) fn used(&self, total: Duration) -> Duration {
        total.saturating_sub(self.before)
    }

    /// Waits until the run has used as much CPU time as its limit permits.
    pub(super) async fn wait_for_limit(self, process: &WorkerProcess) {
        self.wait_for(Duration::ZERO, process).await;
    }

    /// Waits until the run has used as much CPU time as its limit permits, and the CPU grace time in addition.
    pub(super) async fn wait_for_grace_end(self, process: &WorkerProcess) {
        self.wait_for(CPU_GRACE, process).await;
    }

    async fn wait_for(self, grace: Duration, process: &WorkerProcess) {
        let limit = self.before + self.limit + grace;
        wait_until_used(limit, process, |left| (left / *CORES).max(POLL_INTERVAL_MIN)).await;
    }
}

/// Waits until the run has used its CPU credit, after which the run is scheduled as idle work. Never completes if the
/// process has exited.
pub(super) async fn wait_for_credit(credit: Duration, process: &WorkerProcess) {
    let Some(before) = process.cpu_time() else { return std::future::pending().await };
    let cpu = before + credit;
    let started = Instant::now();
    // A worker that uses little CPU time is polled less and less often.
    let pause = |left: Duration| left.max(POLL_INTERVAL_MAX.min(started.elapsed() / 4));
    wait_until_used(cpu, process, pause).await;
}

/// Polls until the process has used the CPU time `cpu`. `pause` returns the next polling interval for the CPU time
/// that is left. Never completes if the process has exited, since the caller waits for the exit as well.
async fn wait_until_used(cpu: Duration, process: &WorkerProcess, pause: impl Fn(Duration) -> Duration) {
    while let Some(used) = process.cpu_time() {
        let left = cpu.saturating_sub(used);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(pause(left)).await;
    }
    std::future::pending().await
}
