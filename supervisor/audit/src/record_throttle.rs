//! Limits how many records of one kind the audit log has of each AI client, so that a client cannot fill the disk, for
//! example with refused requests.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of refused runs, or of authentications, that are recorded for one AI client within `WINDOW` (60 s).
/// Further ones are only counted.
/// Bound: the audit log.
const RECORDED_MAX: u64 = 20;
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of AI clients whose events are counted separately. All further clients share one counter.
const CLIENTS_MAX: usize = 1_000;

/// Counters of events of one kind, by the name of the AI client.
#[derive(Debug, Default)]
pub struct RecordThrottle(HashMap<String, Window>);

#[derive(Debug)]
struct Window {
    since: Instant,
    count: u64,
}

impl RecordThrottle {
    /// Counts an event of an AI client. Returns `None` if the audit log must not record it. Otherwise returns how many events
    /// of the client were not recorded since the last recorded one.
    pub fn admit(&mut self, client: &str, now: Instant) -> Option<u64> {
        let is_over = |window: &Window| now.saturating_duration_since(window.since) >= WINDOW;
        if !self.0.contains_key(client) && self.0.len() >= CLIENTS_MAX {
            self.0.retain(|_, window| !is_over(window) || window.count > RECORDED_MAX);
        }
        let client = if self.0.contains_key(client) || self.0.len() < CLIENTS_MAX { client } else { "" };
        let window = self.0.entry(client.to_owned()).or_insert(Window { since: now, count: 0 });
        let mut left_out = 0;
        if is_over(window) {
            left_out = window.count.saturating_sub(RECORDED_MAX);
            *window = Window { since: now, count: 0 };
        }
        window.count += 1;
        (window.count <= RECORDED_MAX).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrecorded_refusals_are_counted_in_the_next_record() {
        let (mut refusals, start) = (RecordThrottle::default(), Instant::now());
        let recorded = (0..50).filter(|_| refusals.admit("much", start).is_some()).count();
        assert_eq!(recorded as u64, RECORDED_MAX);
        assert_eq!(refusals.admit("little", start), Some(0), "another client has records of its own");
        assert_eq!(refusals.admit("much", start + WINDOW), Some(30));
        assert_eq!(refusals.admit("much", start + WINDOW), Some(0));
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_clients() {
        let (mut refusals, start) = (RecordThrottle::default(), Instant::now());
        for number in 0..3 * CLIENTS_MAX {
            let _ = refusals.admit(&number.to_string(), start);
        }
        assert!(refusals.0.len() <= CLIENTS_MAX + 1);
    }
}
