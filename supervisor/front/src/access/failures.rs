//! What the log says of those who were not let in: who tries a million tokens must not fill a disk with it.

use std::time::Duration;

use lockhouse_base::log_throttle::LogThrottle;

use super::peer::Peer;
use super::refused::Why;

/// Lines in a minute.
const LINES: u32 = 20;

#[derive(Debug)]
pub(super) struct Failures(LogThrottle);

impl Default for Failures {
    fn default() -> Self {
        Self(LogThrottle::new(LINES, Duration::from_secs(60) / LINES))
    }
}

impl Failures {
    pub(super) fn note(&self, why: &Why, peer: Option<&Peer>) {
        let Some(unsaid) = self.0.admit() else { return };
        let who = peer.map_or_else(|| "somebody".to_owned(), Peer::to_string);
        let why = why.in_the_log();
        match unsaid {
            0 => tracing::warn!("a request of {who} is refused: {why}"),
            suppressed => {
                tracing::warn!("a request of {who} is refused: {why}; before it {suppressed} more were");
            }
        }
    }
}
