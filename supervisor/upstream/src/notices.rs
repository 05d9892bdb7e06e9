//! What directly exposed servers say of changes, for the AI clients that have them.

use lockhouse_protocol::ServerName;
use tokio::sync::broadcast;

/// Notices that wait for a slow listener. One that misses some takes it that everything has changed.
const WAITING_MAX: usize = 256;

/// Something that an AI client has may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Tools,
    Resources,
    Prompts,
    /// What one resource holds.
    Resource(ServerName, String),
    /// The configuration or the policy.
    Everything,
}

/// Where changes are told.
#[derive(Clone, Debug)]
pub struct Notices(broadcast::Sender<Notice>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Notices {
    pub fn tell(&self, notice: Notice) {
        // Nobody may be listening.
        let _ = self.0.send(notice);
    }

    pub fn listen(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
