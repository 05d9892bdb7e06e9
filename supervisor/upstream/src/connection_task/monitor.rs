//! Monitors a live connection to an upstream server and returns the next event, such as the end of the connection or a
//! change of the server's tools.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse, FusedFuture};
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::missed_ping::{PING_TIMEOUT, recovered};
use super::state_machine::ConnectionEvent;
use crate::caller_signals::{CallStats, CallerSignals};
use crate::connect_error::ConnectError;
use crate::in_flight_calls::InFlightCalls;
use crate::live_connection::LiveConnection;
use crate::request::ping;
use crate::tool_list::list_tools;
use lockhouse_mcp::client::{Client, ConnectionFailure, FailureSignal};

/// Interval at which the file of accepted tool definitions (pins) is checked for changes while tools wait for a user to
/// accept them.
const ACCEPTANCE_EVERY: Duration = Duration::from_secs(1);

/// A live connection to an upstream server, with the timer that stops an idle server. A ping and a listing of the
/// server's tools may be in progress.
pub(super) struct ConnectionMonitor {
    pub(super) link: LiveConnection,
    pub(super) client: Client,
    pub(super) calls: InFlightCalls,
    /// Notified when the server announces that its tools have changed.
    changed: Arc<Notify>,
    /// Completes once the server has been idle for the configured time.
    idle: BoxFuture<'static, ()>,
    /// The current listing of the server's tools. Terminated if no listing is in progress.
    listing: Fuse<BoxFuture<'static, Result<Catalogue, ConnectError>>>,
    failure_signal: FailureSignal,
    /// The current ping. Terminated if no ping is in progress.
    ping: Fuse<BoxFuture<'static, Result<(), ConnectionFailure>>>,
    /// The answers to calls since the last ping.
    answers: Option<watch::Receiver<CallStats>>,
    /// The wait for a server that has missed a ping. Terminated if it has missed none.
    recovery: Fuse<BoxFuture<'static, Result<(), ConnectionFailure>>>,
}

/// An event of a live connection to an upstream server.
#[allow(clippy::large_enum_variant, reason = "only one exists at a time, and it is matched at once")]
pub(super) enum MonitorEvent {
    Event(ConnectionEvent),
    /// The server's tools were listed again, or listing them failed.
    Listed(Result<Catalogue, ConnectError>),
    /// A user may have accepted tools, so the file of accepted tool definitions (pins) must be checked for changes.
    AcceptanceDue,
}

impl ConnectionMonitor {
    pub(super) fn new(link: LiveConnection, idle: BoxFuture<'static, ()>) -> Self {
        let (client, calls, changed) = (link.client(), link.calls(), link.changed());
        let (listing, ping, recovery) = (Fuse::terminated(), Fuse::terminated(), Fuse::terminated());
        let (failure_signal, answers) = (link.failure_signal(), None);
        Self { link, client, calls, changed, idle, listing, failure_signal, ping, answers, recovery }
    }

    /// Begins to list the server's tools again after the delay `after`. `limit` is the timeout for each page of the
    /// list. The result is an event of [`Self::next`].
    pub(super) fn list_tools(&mut self, name: ServerName, after: Duration, limit: Duration) {
        let client = self.client.clone();
        let listing = async move {
            tokio::time::sleep(after).await;
            list_tools(&name, &client, limit).await
        };
        self.listing = listing.boxed().fuse();
    }

    /// Pings the server. `answers` are those to calls from now on.
    pub(super) fn ping(&mut self, answers: watch::Receiver<CallStats>) {
        self.ping = ping(self.client.clone(), PING_TIMEOUT).boxed().fuse();
        self.answers = Some(answers);
    }

    fn has_answered_since_ping(&self) -> bool {
        self.answers.as_ref().is_some_and(|answers| answers.has_changed().unwrap_or(false))
    }

    /// Waits for the next event of the connection. If `waits_for_acceptance` is true, [`MonitorEvent::AcceptanceDue`]
    /// follows after [`ACCEPTANCE_EVERY`] without another event. The future can be dropped without losing an event.
    pub(super) async fn next(
        &mut self,
        signals: &CallerSignals,
        closing: &CancellationToken,
        waits_for_acceptance: bool,
    ) -> MonitorEvent {
        loop {
            let is_pinged = !self.ping.is_terminated() || !self.recovery.is_terminated();
            let event = tokio::select! {
                how = self.link.wait_ended() => ConnectionEvent::Lost(how),
                () = closing.cancelled() => ConnectionEvent::CloseRequested,
                () = &mut self.idle => ConnectionEvent::IdleTimeout,
                () = self.changed.notified(), if self.listing.is_terminated() => ConnectionEvent::ToolsChanged,
                listed = &mut self.listing => return MonitorEvent::Listed(listed),
                () = tokio::time::sleep(ACCEPTANCE_EVERY), if waits_for_acceptance => {
                    return MonitorEvent::AcceptanceDue;
                }
                () = signals.call_timed_out.notified(), if !is_pinged => ConnectionEvent::Suspected,
                () = self.failure_signal.suspected(), if !is_pinged => ConnectionEvent::Suspected,
                answered = &mut self.ping => match answered {
                    Ok(()) => continue,
                    // An answer to a call shows as well as one to a ping that the server works.
                    Err(_) if self.has_answered_since_ping() => continue,
                    Err(missed) => {
                        let (slots, answers) = (signals.slots.clone(), signals.answers());
                        let recovery = recovered(self.client.clone(), slots, answers, missed);
                        self.recovery = recovery.boxed().fuse();
                        ConnectionEvent::PingMissed
                    }
                },
                recovered = &mut self.recovery => match recovered {
                    Ok(()) => ConnectionEvent::PingAnswered,
                    Err(reason) => ConnectionEvent::CallsEnded(reason),
                },
            };
            return MonitorEvent::Event(event);
        }
    }
}
