//! Resources whose changes a server of the newest era tells of, because AI clients follow them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError};

use super::notices::{DirectNotices, Notice};

/// Resources of one server that are followed at one time.
const RESOURCES_MAX: usize = 100;

/// The resources of one server that are followed.
#[derive(Clone, Debug)]
pub(super) struct Subscriptions {
    server: ServerName,
    uris: Arc<Mutex<BTreeSet<String>>>,
    notices: DirectNotices,
}

/// Why a resource is not followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubscribeError {
    #[error("{RESOURCES_MAX} resources of server {server} are followed already")]
    TooMany { server: ServerName },
    #[error(transparent)]
    Request(#[from] ServiceError),
}

/// Whether a server is told what is followed by a subscription, and not by a request of its own.
pub(super) fn by_subscription(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
}

impl Subscriptions {
    pub(super) fn new(server: ServerName, notices: DirectNotices) -> Self {
        Self { server, uris: Arc::default(), notices }
    }

    /// Follows a resource until the connection ends, if it is not followed already.
    pub(super) async fn follow(
        &self,
        peer: &Peer<RoleClient>,
        uri: &str,
        limit: Duration,
    ) -> Result<(), SubscribeError> {
        let Some(entry) = self.enter(uri)? else { return Ok(()) };
        let filter = SubscriptionFilter::builder().resource_subscriptions([uri.to_owned()]).build();
        let subscription = tokio::time::timeout(limit, peer.listen(filter)).await;
        let mut subscription = subscription.unwrap_or(Err(ServiceError::Timeout { timeout: limit }))?;
        let (server, notices) = (self.server.clone(), self.notices.clone());
        tokio::spawn(async move {
            while let Ok(Some(_)) = subscription.next().await {
                notices.tell(Notice::Resource(server.clone(), entry.uri.clone()));
            }
        });
        Ok(())
    }

    /// An entry for the resource; none if there is one already.
    fn enter(&self, uri: &str) -> Result<Option<Entry>, SubscribeError> {
        let mut uris = self.uris.lock();
        if uris.contains(uri) {
            return Ok(None);
        }
        if uris.len() >= RESOURCES_MAX {
            return Err(SubscribeError::TooMany { server: self.server.clone() });
        }
        uris.insert(uri.to_owned());
        Ok(Some(Entry { uris: self.uris.clone(), uri: uri.to_owned() }))
    }
}

/// One resource that is followed, for as long as this is kept: also a request that nobody waits for any more takes its entry away.
struct Entry {
    uris: Arc<Mutex<BTreeSet<String>>>,
    uri: String,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.uris.lock().remove(&self.uri);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_followed_once_and_no_more_of_them_than_the_limit() {
        let server = ServerName::new("x").expect("a name");
        let subscriptions = Subscriptions::new(server, DirectNotices::default());
        let enter = |number: usize| subscriptions.enter(&format!("file:///{number}"));
        let mut entries: Vec<Entry> =
            (0..RESOURCES_MAX).filter_map(|number| enter(number).expect("room")).collect();
        assert_eq!(entries.len(), RESOURCES_MAX);
        assert!(matches!(enter(0), Ok(None)), "one that is followed already needs no room");
        assert!(matches!(enter(RESOURCES_MAX), Err(SubscribeError::TooMany { .. })));
        drop(entries.pop());
        assert!(matches!(enter(RESOURCES_MAX), Ok(Some(_))), "one that has ended makes room");
    }
}
