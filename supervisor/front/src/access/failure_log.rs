//! Logs failed authentications: 20 lines at once, and then at most 20 lines per minute, so that guessing tokens cannot
//! fill the disk.

use std::time::Duration;

use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_messages::AccessRefusal;

use super::Peer;

/// Maximum number of log lines about failed authentications at once, and then per minute.
const LINES: u32 = 20;

#[derive(Debug)]
pub(super) struct FailureLog(LogThrottle);

impl Default for FailureLog {
    fn default() -> Self {
        Self(LogThrottle::new(LINES, Duration::from_secs(60) / LINES))
    }
}

impl FailureLog {
    pub(super) fn record(&self, refusal: &AccessRefusal, peer: Option<&Peer>) {
        let Some(suppressed) = self.0.admit() else { return };
        let sender = peer.map_or_else(|| "an unknown peer".to_owned(), Peer::to_string);
        let error = match refusal {
            AccessRefusal::NoCredentials => "it has no token".into(),
            other => other.description(),
        };
        match suppressed {
            0 => tracing::warn!("a request from {sender} was rejected: {error}"),
            suppressed => {
                tracing::warn!(
                    "a request from {sender} was rejected: {error}; {suppressed} more were rejected before it"
                );
            }
        }
    }
}
