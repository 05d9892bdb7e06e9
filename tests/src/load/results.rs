//! Collects and prints the results of a load test: answer times, wrong and lost answers. Also measures the daemon's
//! memory and open files.

use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// The maximum number of wrong or lost answers in one phase whose description is kept.
const FAULTS_KEPT: usize = 10;

/// The results of the current phase of a load test, to which all clients add their answers. Each call of
/// [`Figures::take`] ends a phase.
#[derive(Debug, Default)]
pub(crate) struct Figures(Mutex<Samples>);

#[derive(Debug, Default)]
struct Samples {
    times: Vec<Duration>,
    wrong: usize,
    lost: usize,
    faults: Vec<String>,
}

impl Figures {
    pub(crate) fn record_answer(&self, took: Duration) {
        self.samples().times.push(took);
    }

    pub(crate) fn record_wrong(&self, why: String) {
        let mut gathered = self.samples();
        gathered.wrong += 1;
        gathered.fault(why);
    }

    pub(crate) fn record_lost(&self, why: String) {
        let mut gathered = self.samples();
        gathered.lost += 1;
        gathered.fault(why);
    }

    /// Returns the results of the current phase, since the previous call of this function, and begins a new phase.
    pub(crate) fn take(&self) -> Summary {
        let mut gathered = std::mem::take(&mut *self.samples());
        gathered.times.sort_unstable();
        let at = |part: f64| {
            let last = gathered.times.len().saturating_sub(1);
            let millis =
                gathered.times.get((last as f64 * part).round() as usize).copied().unwrap_or_default();
            millis.as_secs_f64() * 1000.0
        };
        Summary {
            answers: gathered.times.len(),
            wrong: gathered.wrong,
            lost: gathered.lost,
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            faults: gathered.faults,
            times: gathered.times,
        }
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.0.lock()
    }
}

impl Samples {
    fn fault(&mut self, why: String) {
        if self.faults.len() < FAULTS_KEPT {
            self.faults.push(why.chars().take(400).collect());
        }
    }
}

/// The results of one or several completed phases of a load test.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) answers: usize,
    pub(crate) wrong: usize,
    pub(crate) lost: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) faults: Vec<String>,
    times: Vec<Duration>,
}

impl Summary {
    /// Merges the results of these phases with those of other phases of the same kind.
    pub(crate) fn and(self, other: Self) -> Self {
        let both = Figures::default();
        {
            let mut gathered = both.samples();
            gathered.times = [self.times, other.times].concat();
            gathered.wrong = self.wrong + other.wrong;
            gathered.lost = self.lost + other.lost;
            gathered.faults = [self.faults, other.faults].concat();
        }
        both.take()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "answers": self.answers, "wrong": self.wrong, "lost": self.lost, "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms, "p99_ms": self.p99_ms, "max_ms": self.max_ms, "faults": self.faults,
        })
    }
}

/// Returns the header line of the table whose lines [`row`] prints.
pub(crate) fn header() -> String {
    format!(
        "{:28}  {:>8}  {:>6}  {:>5}  {:>8}  {:>8}  {:>8}  {:>8}",
        "", "answers", "wrong", "lost", "p50 ms", "p95 ms", "p99 ms", "max ms"
    )
}

/// Prints one line of the table of results, with the label `name`.
pub(crate) fn row(name: &str, summary: &Summary) {
    let Summary { answers, wrong, lost, p50_ms, p95_ms, p99_ms, max_ms, .. } = summary;
    println!(
        "{name:28}  {answers:>8}  {wrong:>6}  {lost:>5}  {p50_ms:>8.1}  {p95_ms:>8.1}  {p99_ms:>8.1}  {max_ms:>8.1}"
    );
}

/// CPU time of this machine since boot, total and stolen by the hypervisor, in clock ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpus {
    all: u64,
    stolen: u64,
}

impl Cpus {
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal; the guest times that follow are included in the
        // first two.
        let ticks: Vec<u64> = first.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// Returns the CPU time that the hypervisor has taken from this machine since `self` was measured, in percent of
    /// the time of all CPUs.
    pub(crate) fn stolen_percent(self) -> f64 {
        let now = Self::now();
        100.0 * (now.stolen - self.stolen) as f64 / (now.all - self.all).max(1) as f64
    }
}

/// Returns the resident memory of a process in KiB, and its number of open files.
pub(crate) fn remains(pid: u32) -> (u64, usize) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    (kib, files)
}
