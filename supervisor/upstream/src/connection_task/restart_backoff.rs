//! Computes how long to wait before an upstream server is started again: exponential backoff, with jitter unless the
//! server violated a limit or the protocol.

use std::time::{Duration, Instant};

/// The first and the longest delay before a server is restarted after an ordinary failure, that is, not after a
/// violation of a limit or the protocol.
/// Bound: upstream servers.
const FAILURE_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The delay after ordinary failures is reset to its minimum if a connection lasted at least this long, or if a call
/// was answered on it. The delay after violations is not reset by this.
const STEADY: Duration = Duration::from_secs(60);
/// The first and the longest delay before the restart of a server that exceeded a limit or broke the protocol. Answered
/// calls do not reset this delay. A connection that lasts longer than the longest delay resets it.
/// Bound: upstream servers.
const VIOLATION_BACKOFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// The delay before the next attempt to connect to an upstream server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RestartDelay {
    /// The delay is exactly this long.
    Exactly(Duration),
    /// The delay is between 0.5 and 1.5 times this long, so that servers that failed together do not restart at the
    /// same moment.
    Jittered(Duration),
}

impl RestartDelay {
    /// Returns the time to sleep. For [`Self::Jittered`], the delay is multiplied by a random factor.
    pub(super) fn to_duration(self) -> Duration {
        match self {
            Self::Exactly(delay) => delay,
            Self::Jittered(delay) => delay.mul_f64(0.5 + fastrand::f64()),
        }
    }
}

/// The restart delays of one upstream server: one after ordinary failures, and one after violations of a limit or the
/// protocol.
pub(super) struct RestartBackoff {
    after_failure: DoublingDelay,
    after_violation: DoublingDelay,
}

impl RestartBackoff {
    pub(super) fn new() -> Self {
        Self {
            after_failure: DoublingDelay::new(FAILURE_BACKOFF),
            after_violation: DoublingDelay::new(VIOLATION_BACKOFF),
        }
    }

    /// Returns the delay before the next attempt to connect; `now` is the current time. The other parameters describe
    /// the previous attempt: `attempt` is when it began, `is_violation` is whether it ended by a violation, and
    /// `has_answered` is whether a call was answered on its connection.
    pub(super) fn next_delay(
        &mut self,
        now: Instant,
        attempt: Instant,
        is_violation: bool,
        has_answered: bool,
    ) -> RestartDelay {
        let lasted = now.duration_since(attempt);
        if lasted > self.after_violation.max {
            self.after_violation.reset();
        }
        if is_violation {
            RestartDelay::Exactly(self.after_violation.take())
        } else {
            if lasted >= STEADY || has_answered {
                self.after_failure.reset();
            }
            RestartDelay::Jittered(self.after_failure.take())
        }
    }
}

/// A delay that doubles with each use, up to a maximum.
pub(super) struct DoublingDelay {
    min: Duration,
    pub(super) max: Duration,
    pub(super) current: Duration,
}

impl DoublingDelay {
    pub(super) fn new((min, max): (Duration, Duration)) -> Self {
        Self { min, max, current: min }
    }

    pub(super) fn double(&mut self) {
        self.current = (self.current * 2).min(self.max);
    }

    pub(super) fn reset(&mut self) {
        self.current = self.min;
    }

    /// Returns the current delay and doubles it for the next time.
    fn take(&mut self) -> Duration {
        let current = self.current;
        self.double();
        current
    }
}
