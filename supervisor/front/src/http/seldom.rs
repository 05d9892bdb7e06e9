//! What strangers can make happen as often as they like, and the log says once in a while.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// One thing to say.
#[derive(Debug, Default)]
pub(super) struct Seldom(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    /// Times that were not said.
    unsaid: u64,
}

impl Seldom {
    /// Says it, with how often it was not said, unless it was said a moment ago.
    pub(super) fn tell(&self, say: impl FnOnce(&str)) {
        let mut said = self.0.lock();
        if said.last.is_some_and(|last| last.elapsed() < EVERY) {
            said.unsaid += 1;
            return;
        }
        let times = match said.unsaid {
            0 => String::new(),
            unsaid => format!(" ({unsaid} more times since this was last said)"),
        };
        *said = Said { last: Some(Instant::now()), unsaid: 0 };
        say(&times);
    }
}
