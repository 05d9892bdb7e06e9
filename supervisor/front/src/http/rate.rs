//! How fast one origin may make this process work for peers that have proven nothing.
//!
//! Not `governor`: a turn is reserved for a connection that waits for it, at most so long, and is given back by a client
//! that proves who it is. `governor` takes turns that are free now, and never takes one back.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;

/// How long an origin must have rested to have as many turns at once as it may have in that time.
const BURST: Duration = Duration::from_secs(4);
/// The longest wait for a turn.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(500);
/// Origins that are remembered before those that have rested are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// So many turns in a second for each origin: the generic cell rate algorithm. Copies count together.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    interval: Duration,
    /// When all turns that an origin has had would have ended at its rate.
    due: Arc<Mutex<HashMap<Origin, Instant>>>,
}

/// A turn would come later than [`WAIT_MAX`]: it was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooFast;

/// A turn that can be given back.
#[derive(Debug)]
pub(super) struct Turn {
    rate: Rate,
    origin: Origin,
}

impl Rate {
    pub(super) fn per_second(turns: u32) -> Self {
        Self { interval: Duration::from_secs(1) / turns.max(1), due: Arc::default() }
    }

    /// Takes a turn, and how long to wait for it.
    ///
    /// # Errors
    /// [`TooFast`]
    pub(super) fn turn(&self, origin: Origin) -> Result<(Turn, Duration), TooFast> {
        self.turn_at(origin, Instant::now())
    }

    fn turn_at(&self, origin: Origin, now: Instant) -> Result<(Turn, Duration), TooFast> {
        let mut due = locked(&self.due);
        if due.len() >= REMEMBERED_MAX {
            due.retain(|_, due| *due > now);
        }
        let next = due.get(&origin).map_or(now, |due| now.max(*due)) + self.interval;
        let wait = next.saturating_duration_since(now).saturating_sub(BURST);
        if wait > WAIT_MAX {
            return Err(TooFast);
        }
        due.insert(origin, next);
        Ok((Turn { rate: self.clone(), origin }, wait))
    }
}

impl Turn {
    /// The work was for a client that has proven who it is: the turn does not count.
    pub(super) fn give_back(self) {
        if let Some(due) = locked(&self.rate.due).get_mut(&self.origin) {
            *due = due.checked_sub(self.rate.interval).unwrap_or(*due);
        }
    }
}

fn locked(due: &Mutex<HashMap<Origin, Instant>>) -> MutexGuard<'_, HashMap<Origin, Instant>> {
    due.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::Address(address.parse().expect("an address"))
    }

    #[test]
    fn an_origin_that_is_too_fast_waits_within_a_bound_and_others_do_not() {
        let (rate, began) = (Rate::per_second(4), Instant::now());
        let (one, other) = (origin("192.0.2.1"), origin("192.0.2.2"));
        let wait = |origin, after: u64| {
            let turn = rate.turn_at(origin, began + Duration::from_millis(after));
            turn.map(|(_, wait)| wait.as_millis())
        };
        assert!((0..16).all(|_| wait(one, 0) == Ok(0)), "what four seconds permit comes at once");
        assert_eq!([wait(one, 0), wait(one, 0)], [Ok(250), Ok(500)]);
        assert_eq!(wait(one, 0), Err(TooFast));
        assert_eq!(wait(other, 0), Ok(0));
        assert_eq!(wait(one, 250), Ok(500), "what was refused has cost no turn");
        assert_eq!(wait(one, 10_000), Ok(0));
    }

    #[test]
    fn a_turn_that_is_given_back_costs_nothing() {
        let (rate, now, one) = (Rate::per_second(4), Instant::now(), origin("192.0.2.1"));
        for _ in 0..100 {
            let (turn, wait) = rate.turn_at(one, now).expect("a turn");
            assert_eq!(wait, Duration::ZERO);
            turn.give_back();
        }
    }
}
