//! Subscriptions of AI clients to resources of an upstream server that sends notifications over subscription streams
//! (MCP 2026-07-28).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::Client;
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use rmcp::model::SubscriptionFilter;

use super::change_notices::{ChangeNotice, ServerChangeNotices};

/// Maximum number of subscribed resources of one server. Further subscriptions fail.
/// Bound: upstream servers.
const RESOURCES_MAX: usize = 100;

/// The resources of one upstream server to whose changes AI clients are subscribed.
#[derive(Clone, Debug)]
pub(super) struct Subscriptions {
    server: ServerName,
    uris: Arc<Mutex<BTreeSet<String>>>,
    notices: ServerChangeNotices,
}

/// Why a subscription to changes of a resource failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubscribeError {
    #[error("{RESOURCES_MAX} resources of server {server} are followed already")]
    TooMany { server: ServerName },
    #[error(transparent)]
    Request(#[from] ResponseError),
}

impl Subscriptions {
    pub(super) fn new(server: ServerName, notices: ServerChangeNotices) -> Self {
        Self { server, uris: Arc::default(), notices }
    }

    /// Subscribes to changes of a resource until the connection ends. Does nothing if the resource is subscribed
    /// already. `limit` is the timeout of the request to subscribe.
    pub(super) async fn subscribe(
        &self,
        client: &Client,
        uri: &str,
        limit: Duration,
    ) -> Result<(), SubscribeError> {
        let Some(entry) = self.register(uri)? else { return Ok(()) };
        let filter = SubscriptionFilter::builder().resource_subscriptions([uri.to_owned()]).build();
        let subscription = tokio::time::timeout(limit, client.listen(filter)).await;
        let mut subscription = subscription.unwrap_or(Err(ResponseError::Timeout(limit)))?;
        let (server, notices) = (self.server.clone(), self.notices.clone());
        tokio::spawn(async move {
            while subscription.next().await.is_some() {
                notices.send(ChangeNotice::Resource(server.clone(), entry.uri.clone()));
            }
        });
        Ok(())
    }

    /// Registers a resource as subscribed. Returns `None` if it is registered already, and an error if the maximum
    /// number is reached.
    fn register(&self, uri: &str) -> Result<Option<Entry>, SubscribeError> {
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

/// Guard that keeps a resource registered as subscribed. Dropping it removes the resource: when the subscription has
/// ended, or when the request to subscribe has failed or was cancelled.
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
        let subscriptions = Subscriptions::new(server, ServerChangeNotices::default());
        let register = |number: usize| subscriptions.register(&format!("file:///{number}"));
        let mut entries: Vec<Entry> =
            (0..RESOURCES_MAX).filter_map(|number| register(number).expect("room")).collect();
        assert_eq!(entries.len(), RESOURCES_MAX);
        assert!(matches!(register(0), Ok(None)), "one that is followed already needs no room");
        assert!(matches!(register(RESOURCES_MAX), Err(SubscribeError::TooMany { .. })));
        drop(entries.pop());
        assert!(matches!(register(RESOURCES_MAX), Ok(Some(_))), "one that has ended makes room");
    }
}
