//! How many refused runs of one client are recorded: a client that is refused again and again must not fill the disk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Refused runs of one client that have a record each, in this time. Further ones are counted.
const RECORDED_MAX: u64 = 20;
const WINDOW: Duration = Duration::from_secs(60);
/// Clients whose refusals are counted apart. Above that, those of all others are counted together.
const CLIENTS_MAX: usize = 1_000;

/// The refusals of each client, by its name.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashMap<String, Window>);

#[derive(Debug)]
struct Window {
    since: Instant,
    count: u64,
}

impl Refusals {
    /// Counts one more. Some: it has a record, with the number of those before it that have none.
    pub(super) fn admit(&mut self, client: &str, now: Instant) -> Option<u64> {
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
    fn further_refusals_of_a_client_are_counted_and_told_with_the_next_that_has_a_record() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let recorded = (0..50).filter(|_| refusals.admit("much", start).is_some()).count();
        assert_eq!(recorded as u64, RECORDED_MAX);
        assert_eq!(refusals.admit("little", start), Some(0), "another client has records of its own");
        assert_eq!(refusals.admit("much", start + WINDOW), Some(30));
        assert_eq!(refusals.admit("much", start + WINDOW), Some(0));
    }

    #[test]
    fn any_number_of_clients_takes_a_bounded_place() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        for number in 0..3 * CLIENTS_MAX {
            let _ = refusals.admit(&number.to_string(), start);
        }
        assert!(refusals.0.len() <= CLIENTS_MAX + 1);
    }
}
