//! Resources whose changes a server of the newest era tells of, because AI clients follow them.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_policies::Item;
use lockhouse_protocol::FailureCode;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};

use super::calls::Unsuccessful;
use super::connection::{Connection, Offer};
use super::notices::Notice;

/// Resources of one server that are followed at one time.
const FOLLOWED_MAX: usize = 100;

/// Those that are followed.
#[derive(Debug, Default)]
pub(super) struct Followed(Mutex<BTreeSet<String>>);

impl Followed {
    fn uris(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock()
    }
}

/// Whether a server is told what is followed by a subscription, and not by a request of its own.
pub(super) fn by_subscription(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
}

impl Connection {
    /// Follows a resource until the connection ends, if it is not followed already.
    pub(super) async fn follow(
        &self,
        offer: &Offer,
        item: &Item,
        limit: Duration,
    ) -> Result<Vec<u8>, Unsuccessful> {
        let uri = item.as_str().to_owned();
        {
            let mut followed = self.signals.followed.uris();
            if followed.len() >= FOLLOWED_MAX && !followed.contains(&uri) {
                let told = format!("{FOLLOWED_MAX} resources of server {} are followed already", self.name);
                return Err((FailureCode::ToolFailed, told));
            }
            if !followed.insert(uri.clone()) {
                return Ok(b"{}".to_vec());
            }
        }
        let filter = SubscriptionFilter::builder().resource_subscriptions([uri.clone()]).build();
        let listening = tokio::time::timeout(limit, offer.peer.listen(filter)).await;
        let listening = listening.unwrap_or(Err(ServiceError::Timeout { timeout: limit }));
        match listening {
            Ok(subscription) => {
                let (name, signals) = (self.name.clone(), Arc::clone(&self.signals));
                tokio::spawn(async move {
                    told(subscription, |uri| signals.tell(Notice::Resource(name.clone(), uri)), &uri).await;
                    signals.followed.uris().remove(&uri);
                });
                Ok(b"{}".to_vec())
            }
            Err(error) => {
                self.signals.followed.uris().remove(&uri);
                Err(self.told(&error, limit))
            }
        }
    }
}

async fn told(mut subscription: Subscription, tell: impl Fn(String), uri: &str) {
    while let Ok(Some(_)) = subscription.next().await {
        tell(uri.to_owned());
    }
}
