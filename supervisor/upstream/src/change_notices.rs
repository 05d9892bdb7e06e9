//! Notices that the tools, resources or prompts of directly exposed servers have changed, for the AI clients that use
//! them.

use lockhouse_protocol::ServerName;
use tokio::sync::broadcast;

/// Notices that may wait for a slow subscriber. A subscriber that misses some must assume that everything has
/// changed.
const WAITING_MAX: usize = 256;

/// A notice that something which AI clients use directly may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeNotice {
    Tools,
    Resources,
    Prompts,
    /// The content of one resource has changed: the server, and the URI of the resource.
    Resource(ServerName, String),
    /// The configuration or the policy has changed, and so may all lists.
    Everything,
}

/// Broadcasts the change notices of all upstream servers to the fronts.
#[derive(Clone, Debug)]
pub struct ChangeNotices(broadcast::Sender<ChangeNotice>);

impl Default for ChangeNotices {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl ChangeNotices {
    pub fn send(&self, notice: ChangeNotice) {
        // There may be no subscriber.
        let _ = self.0.send(notice);
    }

    pub fn subscribe(&self) -> broadcast::Receiver<ChangeNotice> {
        self.0.subscribe()
    }
}

/// Sends the change notices of one server; drops them if AI clients do not use the server directly.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectChangeNotices(Option<ChangeNotices>);

impl DirectChangeNotices {
    pub(super) fn new(notices: Option<ChangeNotices>) -> Self {
        Self(notices)
    }

    /// Whether AI clients use the server directly.
    pub(super) fn is_direct(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn send(&self, notice: ChangeNotice) {
        if let Some(notices) = &self.0 {
            notices.send(notice);
        }
    }
}
