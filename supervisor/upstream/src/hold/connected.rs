//! A connection in use: all that can happen to it, whichever comes first.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse, FusedFuture};
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lifecycle::Event;
use crate::broken::Reason;
use crate::callers::Callers;
use crate::fault::Fault;
use crate::link::Link;
use crate::listing::list_tools;
use crate::request::ping;
use crate::signals::Signals;

/// While tools wait to be accepted: how often it is looked whether a person has done so.
const ACCEPTANCE_EVERY: Duration = Duration::from_secs(1);
/// A server that lets a call time out and answers nothing in so long is started again.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const SILENT: &str = "it does not answer any more";

/// A link, and what goes on with it besides calls.
pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) peer: Peer<RoleClient>,
    pub(super) callers: Callers,
    /// Told when the server says that its tools are others now.
    changed: Arc<Notify>,
    /// Ends once nobody has needed the server for the configured time.
    idle: BoxFuture<'static, ()>,
    /// At most one listing at a time.
    listing: Fuse<BoxFuture<'static, Result<Catalogue, Fault>>>,
    /// Whether the server answered. At most one ping at a time.
    ping: Fuse<BoxFuture<'static, bool>>,
}

/// What has happened.
#[allow(clippy::large_enum_variant)] // There is one at a time, which is taken apart at once.
pub(super) enum Happening {
    Event(Event),
    /// The tools were listed again.
    Listed(Result<Catalogue, Fault>),
    /// A person may have accepted tools.
    AcceptanceDue,
}

impl Connected {
    pub(super) fn new(link: Link, idle: BoxFuture<'static, ()>) -> Self {
        let (peer, callers, changed) = (link.peer(), link.callers(), link.changed());
        let (listing, ping) = (Fuse::terminated(), Fuse::terminated());
        Self { link, peer, callers, changed, idle, listing, ping }
    }

    /// Lists the tools again after this time. `limit` is for each page of the list.
    pub(super) fn list_tools(&mut self, name: ServerName, after: Duration, limit: Duration) {
        let peer = self.peer.clone();
        let listing = async move {
            tokio::time::sleep(after).await;
            list_tools(&name, &peer, limit).await
        };
        self.listing = listing.boxed().fuse();
    }

    pub(super) fn ping(&mut self) {
        self.ping = ping(self.peer.clone(), PING_TIMEOUT).boxed().fuse();
    }

    /// Nothing is lost when this is cancelled.
    pub(super) async fn next(
        &mut self,
        signals: &Signals,
        closing: &CancellationToken,
        waits_for_acceptance: bool,
    ) -> Happening {
        loop {
            let event = tokio::select! {
                how = self.link.ended() => Event::Lost(how),
                () = closing.cancelled() => Event::CloseRequested,
                () = &mut self.idle => Event::IdleLimit,
                () = self.changed.notified(), if self.listing.is_terminated() => Event::ToolsChanged,
                listed = &mut self.listing => return Happening::Listed(listed),
                () = tokio::time::sleep(ACCEPTANCE_EVERY), if waits_for_acceptance => {
                    return Happening::AcceptanceDue;
                }
                () = signals.suspect.notified(), if self.ping.is_terminated() => Event::CallTimedOut,
                has_answered = &mut self.ping => match has_answered {
                    true => continue,
                    false => Event::Lost(self.link.reason().or_else(|| Some(Reason::failed(SILENT)))),
                },
            };
            return Happening::Event(event);
        }
    }
}
