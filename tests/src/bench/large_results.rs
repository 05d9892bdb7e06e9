//! Measures calls with results of 59 MB, which only a configuration permits, in processes of their own: the time of the second
//! one, and the supervisor's peak of memory.

use super::Fallible;
use super::build::Build;
use super::percentiles::Times;
use super::workloads::largest_results;

/// The configuration that permits results of this size.
pub(crate) const LIMITS: &str = "[limits]\nframe_kib = 61440\nmemory_mib = 1024\n";

/// Number of processes of each build for each row.
const PROCESSES: usize = 7;

/// Measures the builds in turns, and prints a table.
pub(crate) fn measure(builds: &[Build]) -> Fallible<()> {
    println!("medians of {PROCESSES} processes; MB is the supervisor's peak of memory\n");
    for row in largest_results() {
        let mut times = vec![Vec::new(); builds.len()];
        let mut peaks = vec![Vec::new(); builds.len()];
        for _ in 0..PROCESSES {
            for (at, build) in builds.iter().enumerate() {
                let mut client = build.start()?;
                client.run(&row)?;
                times[at].push(client.run(&row)?);
                peaks[at].push(client.peak_memory_mb()?);
            }
        }
        for ((build, times), mut peaks) in builds.iter().zip(times).zip(peaks) {
            peaks.sort_unstable();
            let time = Times::new(times).ok_or("no times")?.percentile(50);
            println!(
                "{:50}  {time:>8.1} ms  {:>4} MB  {}",
                row.name,
                peaks[PROCESSES / 2],
                build.path().display()
            );
        }
    }
    Ok(())
}
