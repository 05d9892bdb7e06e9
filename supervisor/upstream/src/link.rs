//! One conversation with a server, from its handshake to its end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RunningService, RunningServiceCancellationToken};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::broken::{Broken, Reason};
use super::callers::Callers;
use super::host::Host;
use super::notices::{DirectNotices, Notice};
use super::process::ServerProcess;
use super::status::Ending;

/// How long a connection over HTTP that is of no more use stays for those who wait for it.
const HTTP_TELL: Duration = Duration::from_millis(100);
/// When a subscription that the server has ended, or refused, is asked for again.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(30);
/// How long a server over HTTP gets to hear that we leave.
const HTTP_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A conversation that has begun, and what it runs on.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    callers: Callers,
    /// Ends with the conversation.
    conversation: JoinHandle<()>,
    ending: RunningServiceCancellationToken,
    ground: Ground,
    /// Told when the server says that its tools are others now.
    changed: Arc<Notify>,
    subscription: Option<JoinHandle<()>>,
}

pub(super) type Service = RunningService<RoleClient, Host>;

/// What a conversation runs on.
#[allow(clippy::large_enum_variant)] // There is one for each connection.
pub(super) enum Ground {
    Process {
        process: ServerProcess,
        /// Told by its streams.
        broken: Broken,
        last_lines: LastLines,
    },
    Http(Broken),
}

/// What the end of a conversation took.
pub(super) struct LinkEnd {
    pub(super) ending: Ending,
    /// Of a process that ended by itself.
    pub(super) status: Option<ExitStatus>,
    /// What the server wrote last, without its secrets: for a person.
    pub(super) last_words: String,
}

impl Link {
    pub(super) fn new(service: Service, ground: Ground, changed: Arc<Notify>) -> Self {
        let (peer, ending) = (service.peer().clone(), service.cancellation_token());
        let host = service.service();
        let (callers, notices) = (host.callers(), host.notices());
        let subscription = subscribe(&peer, &changed, notices);
        let conversation = tokio::spawn(async move { drop(service.waiting().await) });
        Self { peer, callers, conversation, ending, ground, changed, subscription }
    }

    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.peer.clone()
    }

    pub(super) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Why it is of no more use, if that is known already.
    pub(super) fn reason(&self) -> Option<Reason> {
        match &self.ground {
            Ground::Http(broken) | Ground::Process { broken, .. } => broken.reason(),
        }
    }

    /// Waits until the server's side ends it, or takes nothing any more, or sends too much: how, if more can be said than
    /// that.
    pub(super) async fn ended(&mut self) -> Option<Reason> {
        match &mut self.ground {
            Ground::Http(broken) => tokio::select! {
                biased;
                reason = broken.told() => {
                    // So that the request that noticed it is told what it noticed.
                    let _ = timeout(HTTP_TELL, &mut self.conversation).await;
                    Some(reason)
                }
                _ = &mut self.conversation => Some(Reason::failed("the conversation ended")),
            },
            Ground::Process { process, broken, .. } => tokio::select! {
                biased;
                reason = broken.told() => Some(reason),
                status = process.wait() => status.map(told).map(Reason::failed),
                _ = &mut self.conversation => None,
            },
        }
    }

    /// Ends it, and the process with it.
    pub(super) async fn end(self) -> LinkEnd {
        // The service goes, and with it the process's input.
        self.ending.cancel();
        if let Some(subscription) = self.subscription {
            subscription.abort();
        }
        match self.ground {
            Ground::Http(_) => {
                // So that the server can forget the session.
                if !self.conversation.is_finished() {
                    let _ = timeout(HTTP_CLOSE_TIMEOUT, self.conversation).await;
                }
                LinkEnd { ending: Ending::Left, status: None, last_words: String::new() }
            }
            Ground::Process { process, last_lines, .. } => {
                let (ending, status) = process.end().await;
                LinkEnd { ending, status, last_words: last_lines.told().await }
            }
        }
    }
}

/// From 2026-07-28 on a server tells of its tools only whoever asked to be told.
fn subscribe(
    peer: &Peer<RoleClient>,
    changed: &Arc<Notify>,
    notices: DirectNotices,
) -> Option<JoinHandle<()>> {
    let info = peer.peer_info()?;
    let mut filter = SubscriptionFilter::default();
    let of = &info.capabilities;
    let announced = |announces: Option<bool>| announces.filter(|announces| *announces);
    filter.tools_list_changed = of.tools.as_ref().and_then(|tools| announced(tools.list_changed));
    if notices.is_direct() {
        filter.prompts_list_changed = of.prompts.as_ref().and_then(|prompts| announced(prompts.list_changed));
        filter.resources_list_changed =
            of.resources.as_ref().and_then(|resources| announced(resources.list_changed));
    }
    if filter == SubscriptionFilter::default() || info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    Some(tokio::spawn(follow(peer.clone(), filter, changed.clone(), notices)))
}

/// As long as the connection lasts: a server over HTTP may end a subscription at any time.
async fn follow(
    peer: Peer<RoleClient>,
    filter: SubscriptionFilter,
    changed: Arc<Notify>,
    notices: DirectNotices,
) {
    let mut is_first = true;
    while !peer.is_transport_closed() {
        if let Ok(mut subscription) = peer.listen(filter.clone()).await {
            // What was announced while there was none is found all the same.
            if !std::mem::take(&mut is_first) {
                changed.notify_one();
            }
            while let Ok(Some(told)) = subscription.next().await {
                match told {
                    ServerNotification::PromptListChangedNotification(_) => notices.tell(Notice::Prompts),
                    ServerNotification::ResourceListChangedNotification(_) => notices.tell(Notice::Resources),
                    _ => changed.notify_one(),
                }
            }
        }
        tokio::time::sleep(SUBSCRIBE_AGAIN).await;
    }
}

pub(super) fn told(status: ExitStatus) -> String {
    format!("it ended ({status})")
}
