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

/// Where changes are told, of all servers.
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

/// Where changes of one server are told: nowhere, unless AI clients have it directly.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectNotices(Option<Notices>);

impl DirectNotices {
    pub(super) fn new(notices: Option<Notices>) -> Self {
        Self(notices)
    }

    /// Whether AI clients have the server directly.
    pub(super) fn is_direct(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn tell(&self, notice: Notice) {
        if let Some(notices) = &self.0 {
            notices.tell(notice);
        }
    }
}
