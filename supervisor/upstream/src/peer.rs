//! The MCP connection to an upstream server, as the requests to the server see it, over either transport.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerNotification, ServerPeerInfo, SubscriptionFilter};
use rmcp::service::ServiceError;

use lockhouse_mcp::{LineClient, LineSubscription};

/// The connection to a server. Clones share it.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    /// Over the standard input and output of a process.
    Lines(LineClient),
    /// Over HTTP, with rmcp's client.
    Http(rmcp::service::Peer<RoleClient>),
}

impl Peer {
    /// Returns what the server said of itself in the handshake.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        match self {
            Self::Lines(client) => client.info(),
            Self::Http(peer) => peer.peer_info(),
        }
    }

    /// Whether the connection uses protocol version 2026-07-28 or a newer one.
    pub(super) fn is_modern(&self) -> bool {
        self.info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Lines(client) => client.is_closed(),
            Self::Http(peer) => peer.is_transport_closed(),
        }
    }

    /// Subscribes to notifications of a server of protocol version 2026-07-28, and waits for its acknowledgment.
    pub(super) async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, ServiceError> {
        Ok(match self {
            Self::Lines(client) => Subscription::Lines(client.listen(filter).await?),
            Self::Http(peer) => Subscription::Http(Box::new(peer.listen(filter).await?)),
        })
    }
}

/// A subscription to notifications of the server. Dropping it ends the subscription.
pub(super) enum Subscription {
    Lines(LineSubscription),
    Http(Box<rmcp::service::Subscription>),
}

impl Subscription {
    /// Waits for the next notification. Returns `None` if the subscription has ended.
    pub(super) async fn next(&mut self) -> Option<ServerNotification> {
        match self {
            Self::Lines(subscription) => subscription.next().await,
            Self::Http(subscription) => subscription.next().await.ok().flatten(),
        }
    }
}
