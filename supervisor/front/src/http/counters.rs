//! Counts what the HTTP server does, and reports it to the engine, which has the metrics.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockhouse_link::EngineClient;
use lockhouse_messages::{FrontCounters, HttpRefusal};
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which the counters are reported if they have changed. Metrics that clients of this process request are
/// exact, because each such request reports the counters first.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// The status codes that are counted one by one. All others are counted together.
const STATUS_MIN: u16 = 100;
const STATUS_MAX: u16 = 599;
const STATUS_COUNT: usize = (STATUS_MAX - STATUS_MIN + 1) as usize;
/// The status code under which all others are counted.
const OTHER_STATUS: u16 = 0;

/// The counters of this process, since the previous report.
static COUNTERS: Counters = Counters::new();

struct Counters {
    responses: [AtomicU64; STATUS_COUNT],
    other_responses: AtomicU64,
    refusals: [AtomicU64; HttpRefusal::ALL.len()],
    authentication_failures: AtomicU64,
    opened_connections: AtomicU64,
    /// The number of connections that are open now, which a report does not change.
    open_connections: AtomicU64,
    has_changed: AtomicBool,
}

/// Guard that counts an HTTP connection as open until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(());

impl Counters {
    const fn new() -> Self {
        Self {
            responses: [const { AtomicU64::new(0) }; STATUS_COUNT],
            other_responses: AtomicU64::new(0),
            refusals: [const { AtomicU64::new(0) }; HttpRefusal::ALL.len()],
            authentication_failures: AtomicU64::new(0),
            opened_connections: AtomicU64::new(0),
            open_connections: AtomicU64::new(0),
            has_changed: AtomicBool::new(false),
        }
    }

    fn response(&self, status: u16) -> &AtomicU64 {
        let index = status.checked_sub(STATUS_MIN).and_then(|index| self.responses.get(usize::from(index)));
        index.unwrap_or(&self.other_responses)
    }

    fn add(&self, counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
        self.has_changed.store(true, Ordering::Relaxed);
    }

    /// Returns what was counted since the previous call. Returns `None` if nothing has changed.
    fn take(&self) -> Option<FrontCounters> {
        if !self.has_changed.swap(false, Ordering::Relaxed) {
            return None;
        }
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let responses = (STATUS_MIN..=STATUS_MAX).zip(&self.responses);
        let responses = responses.chain([(OTHER_STATUS, &self.other_responses)]);
        let responses = responses.map(|(status, counter)| (status, take(counter)));
        let refusals = HttpRefusal::ALL.into_iter().zip(&self.refusals);
        let refusals = refusals.map(|(why, counter)| (why, take(counter)));
        Some(FrontCounters {
            responses: responses.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            refusals: refusals.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            authentication_failures: take(&self.authentication_failures),
            opened_connections: take(&self.opened_connections),
            open_connections: self.open_connections.load(Ordering::Relaxed),
        })
    }
}

/// Counts an HTTP response to an AI client by its status code.
pub(super) fn count_response(status: u16) {
    COUNTERS.add(COUNTERS.response(status));
}

/// Counts an HTTP request of an AI client whose authentication failed.
pub(super) fn count_auth_failure() {
    COUNTERS.add(&COUNTERS.authentication_failures);
}

/// Counts an HTTP request or connection of an AI client that was refused.
pub(super) fn count_refusal(why: HttpRefusal) {
    if let Some(counter) = COUNTERS.refusals.get(why as usize) {
        COUNTERS.add(counter);
    }
}

pub(super) fn open_connection() -> OpenConnection {
    COUNTERS.add(&COUNTERS.opened_connections);
    COUNTERS.open_connections.fetch_add(1, Ordering::Relaxed);
    OpenConnection(())
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        COUNTERS.open_connections.fetch_sub(1, Ordering::Relaxed);
        COUNTERS.has_changed.store(true, Ordering::Relaxed);
    }
}

/// Reports the counters to the engine, if they have changed.
pub(super) fn report(engine: &EngineClient) {
    if let Some(counters) = COUNTERS.take() {
        engine.report_counters(counters);
    }
}

/// Reports the counters to the engine at intervals.
pub(super) async fn report_regularly(engine: &EngineClient) -> Infallible {
    let mut ticks = interval(REPORT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        report(engine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_reported_once() {
        let counters = Counters::new();
        assert_eq!(counters.take(), None);
        for status in [200, 200, 99, 600, 100, 599] {
            counters.add(counters.response(status));
        }
        counters.open_connections.store(3, Ordering::Relaxed);
        let expected = FrontCounters {
            responses: [(0, 2), (100, 1), (200, 2), (599, 1)].into(),
            open_connections: 3,
            ..FrontCounters::default()
        };
        assert_eq!(counters.take(), Some(expected));
        assert_eq!(counters.take(), None);
        counters.add(&counters.opened_connections);
        let expected =
            FrontCounters { opened_connections: 1, open_connections: 3, ..FrontCounters::default() };
        assert_eq!(counters.take(), Some(expected));
    }

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, why) in HttpRefusal::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, index, "{why:?}");
        }
    }
}
