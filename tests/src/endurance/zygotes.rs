//! Observes the zygotes of a server over time: when they start, and their memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_tests::Process;

use super::leftover_resources;
use super::report::Report;

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The zygotes that were observed, and the resident memory of zygotes per language.
#[derive(Default)]
pub(super) struct Zygotes {
    /// The time when each zygote was first observed, by process id.
    seen: BTreeMap<u32, Instant>,
    most_kib: BTreeMap<&'static str, u64>,
    latest_kib: BTreeMap<&'static str, u64>,
}

impl Zygotes {
    /// Observes the zygotes of the server with the process id `server` until `work` completes.
    pub(super) async fn watch(&mut self, server: u32, work: impl Future<Output = ()>) {
        tokio::pin!(work);
        loop {
            for zygote in leftover_resources::zygotes(server) {
                self.look(&zygote);
            }
            if tokio::time::timeout(POLL_INTERVAL, &mut work).await.is_ok() {
                return;
            }
        }
    }

    fn look(&mut self, zygote: &Process) {
        self.seen.entry(zygote.pid).or_insert_with(Instant::now);
        let Some(kib) = leftover_resources::resident_kib(zygote.pid) else { return };
        let language = leftover_resources::language(zygote);
        let most = self.most_kib.entry(language).or_default();
        *most = kib.max(*most);
        self.latest_kib.insert(language, kib);
    }

    /// Describes how far the moment `at` is from the nearest moment at which a zygote was first observed; `None` if no
    /// zygote was observed. A report thereby shows whether the start of a zygote may be the cause of a long pause at
    /// `at`.
    pub(super) fn nearest(&self, at: Instant) -> Option<String> {
        let far =
            |seen: &Instant| seen.saturating_duration_since(at).max(at.saturating_duration_since(*seen));
        let nearest = self.seen.values().map(far).min()?;
        Some(format!("{:.1} s from the nearest appearance of a zygote", nearest.as_secs_f64()))
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        report.figure("zygotes that were replaced", self.seen.len().saturating_sub(2) as f64, "");
        for (language, most) in &self.most_kib {
            let latest = self.latest_kib.get(language).copied().unwrap_or_default();
            report.figure(format!("{language}: most memory of a zygote"), *most as f64 / 1024.0, "MiB");
            report.figure(format!("{language}: memory of the last zygote"), latest as f64 / 1024.0, "MiB");
        }
    }
}
