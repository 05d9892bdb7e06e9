//! Change notices: they tell AI clients that the tools, resources or prompts of an upstream server have changed. Resources
//! and prompts concern only AI clients that use the server directly; tools are in the description of `run_code` too.

use lockhouse_protocol::ServerName;
use tokio::sync::broadcast;

/// Maximum number of notices that are stored for a slow subscriber. If more are sent, the subscriber misses the oldest
/// ones and must assume that everything has changed.
const WAITING_MAX: usize = 256;

/// A notice that something may have changed in an upstream server that AI clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeNotice {
    Tools,
    Resources,
    Prompts,
    /// The content of one resource has changed. Contains the server and the resource's URI.
    Resource(ServerName, String),
    /// The configuration or the policy has changed, so the lists of tools, resources and prompts may all have changed.
    Everything,
}

/// Broadcasts the change notices of all upstream servers to the front (the side of Lockhouse that faces AI clients),
/// which sends the notices to AI clients.
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

/// Sends the change notices of one upstream server. Drops those about resources and prompts if AI clients do not use the
/// server directly. The default sends nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerChangeNotices {
    notices: Option<ChangeNotices>,
    is_direct: bool,
}

impl ServerChangeNotices {
    /// `is_direct` is whether AI clients use the server directly.
    pub(super) fn new(notices: ChangeNotices, is_direct: bool) -> Self {
        Self { notices: Some(notices), is_direct }
    }

    /// Whether AI clients use the server directly.
    pub(super) fn is_direct(&self) -> bool {
        self.is_direct
    }

    pub(super) fn send(&self, notice: ChangeNotice) {
        if let Some(notices) = &self.notices
            && (self.is_direct || notice == ChangeNotice::Tools)
        {
            notices.send(notice);
        }
    }
}
