//! Where a connection stands, as the task that holds it publishes it to callers.

use std::sync::Arc;

use lockhouse_catalog::Catalogue;
use rmcp::RoleClient;
use rmcp::service::Peer;

use super::callers::Callers;

/// Where a connection stands.
#[derive(Clone, Debug)]
pub enum State {
    /// Not started: nobody has needed it yet, or not for a while.
    Idle,
    /// Being started, or started again.
    Connecting,
    /// Usable.
    Connected(Arc<Offer>),
    /// The last attempt failed, for this reason, which is in words of ours alone; another will follow.
    Failed(String),
}

/// A connected server and its tools.
#[derive(Debug)]
pub struct Offer {
    pub catalogue: Arc<Catalogue>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) callers: Callers,
}
