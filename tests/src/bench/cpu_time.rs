//! The CPU time of the processes of one `lockhouse serve` or gateway.

use std::fs;
use std::iter::Sum;
use std::ops::{Add, Range, Sub};
use std::time::Duration;

/// The unit of CPU times in `/proc/PID/stat`, which is the same on all architectures.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time that a supervisor and its workers have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    pub(crate) supervisor: Duration,
    /// The CPU time of the zygotes and of all workers that have exited, in steps of 10 ms. Upstream servers are not
    /// included.
    pub(crate) workers: Duration,
}

impl CpuTime {
    /// Reads the CPU time that the supervisor with this process id, its zygotes and the exited workers have used so
    /// far.
    pub(crate) fn of(supervisor: u32) -> Self {
        let zygotes = children(supervisor).into_iter().filter(|child| is_zygote(*child));
        let living: Duration = zygotes.map(|zygote| ticks(zygote, OWN.start..EXITED_CHILDREN.end)).sum();
        // Zygotes that were replaced, with their workers.
        let workers = living + ticks(supervisor, EXITED_CHILDREN);
        Self { supervisor: thread_time(supervisor), workers }
    }

    /// Returns this CPU time divided by `runs`, in milliseconds: that of the supervisor and that of the workers.
    pub(crate) fn per_run(self, runs: usize) -> [f64; 2] {
        [self.supervisor, self.workers].map(|time| time.as_secs_f64() * 1000.0 / runs as f64)
    }
}

impl Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { supervisor: self.supervisor + other.supervisor, workers: self.workers + other.workers }
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let supervisor = self.supervisor.saturating_sub(before.supervisor);
        Self { supervisor, workers: self.workers.saturating_sub(before.workers) }
    }
}

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), Self::add)
    }
}

/// Returns the CPU time of all threads of a process, which the scheduler counts in nanoseconds (`schedstat`).
fn thread_time(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        fs::read_to_string(thread.path().join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// The fields of [`stat_fields`] with the CPU time of the process itself, in user mode and in the kernel.
const OWN: Range<usize> = 11..13;
/// The fields of [`stat_fields`] with the CPU time of the children that have exited, and of their exited children.
const EXITED_CHILDREN: Range<usize> = 13..15;

/// Returns the sum of fields of `/proc/PID/stat` that are CPU times; 0 if there is no such process.
fn ticks(process: u32, fields: Range<usize>) -> Duration {
    let times = stat_fields(process).unwrap_or_default();
    TICK * times.get(fields).unwrap_or_default().iter().sum::<u32>()
}

/// Returns the fields after the process name in `/proc/PID/stat` as numbers; `None` if there is no such process. A
/// field that is not a non-negative number, such as the state, is 0.
fn stat_fields(process: u32) -> Option<Vec<u32>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(|field| field.parse().unwrap_or(0)).collect())
}

fn children(process: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes
        .filter(|child| stat_fields(*child).is_some_and(|fields| fields.get(1) == Some(&process)))
        .collect()
}

/// Whether a child of the supervisor is a zygote. A zygote has an empty environment, and an upstream server does not.
fn is_zygote(process: u32) -> bool {
    fs::read(format!("/proc/{process}/environ")).is_ok_and(|environment| environment.is_empty())
}
