//! Notifies AI clients of changes to the list of tools, and to the resources and prompts of directly exposed servers.
//! From protocol 2026-07-28 on, an AI client gets the changes to which it subscribes. A client of an older protocol
//! version gets all list changes, and the updates of the resources to which it subscribes.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_link::{Exchange, ExchangeStep};
use lockhouse_messages::{DirectAction, DirectTarget, Event, Input, InputSupport, ListChanges, Request};
use lockhouse_protocol::ServerName;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ErrorData, JsonObject, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Call;
use crate::{McpHandler, client_name};

/// Maximum number of resource subscriptions of one connection, or of one `subscriptions/listen` request.
const SUBSCRIPTIONS_MAX: usize = 100;

/// The resource subscriptions of one connection. When the last clone is dropped, changes are no longer forwarded.
#[derive(Clone)]
pub(crate) struct ConnectionSubscriptions(Arc<SubscriptionState>);

struct SubscriptionState {
    closed: CancellationToken,
    _guard: DropGuard,
    /// URIs of the subscribed resources, each with its upstream server.
    resources: Mutex<BTreeMap<String, ServerName>>,
}

impl Default for ConnectionSubscriptions {
    fn default() -> Self {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        Self(Arc::new(SubscriptionState { closed, _guard: guard, resources: Mutex::default() }))
    }
}

impl ConnectionSubscriptions {
    fn resources(&self) -> MutexGuard<'_, BTreeMap<String, ServerName>> {
        self.0.resources.lock()
    }
}

/// Waits for the engine's next notice of changed lists (tools, prompts, resources) and updated resources. Returns
/// `None` when no more notices will follow.
async fn next_change(changes: &mut Exchange) -> Option<ListChanges> {
    loop {
        match changes.next().await {
            ExchangeStep::Event(Event::Changed(changed)) => return Some(changed),
            ExchangeStep::Event(_) => {}
            ExchangeStep::Finished(_) => return None,
        }
    }
}

impl McpHandler {
    /// Starts to notify an AI client of an older protocol version of all list changes and of updates of subscribed
    /// resources, until its connection closes.
    pub(crate) fn follow_changes(&self, context: &NotificationContext<RoleServer>) {
        let Some(principal) = self.transport.principal(&context.extensions) else { return };
        let (peer, closed) = (context.peer.clone(), self.direct.subscriptions.0.closed.clone());
        // A strong reference would keep the subscriptions alive after the connection has closed.
        let subscriptions = Arc::downgrade(&self.direct.subscriptions.0);
        let closing = self.closing.clone();
        let name = principal.client(peer.peer_info().map(|info| info.client_info.name.clone()).as_deref());
        let engine = self.engine.clone();
        tokio::spawn(async move {
            let abilities = InputSupport::default();
            let mut changes = engine.open(&principal, name, abilities, Request::FollowChanges).await;
            loop {
                let changed = tokio::select! {
                    changed = next_change(&mut changes) => changed,
                    () = closed.cancelled() => return,
                    () = closing.cancelled() => return,
                };
                let Some(changed) = changed else { return };
                let Some(subscriptions) = subscriptions.upgrade().map(ConnectionSubscriptions) else {
                    return;
                };
                let resources = |(server, uri): &(ServerName, String)| {
                    subscriptions.resources().get(uri).is_some_and(|of| of == server)
                };
                let updated: Vec<String> =
                    changed.updated.iter().filter(|of| resources(of)).map(|(_, uri)| uri.clone()).collect();
                drop(subscriptions);
                if notify(&peer, &changed, updated).await.is_err() {
                    return;
                }
                changes.send(Input::ChangesDelivered);
            }
        });
    }

    /// Returns the part of a subscription filter that Lockhouse accepts. If no server is exposed directly,
    /// this is only the subscription to changes of the list of tools.
    pub(crate) fn accepted_filter(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        if !self.has_direct() {
            accepted = SubscriptionFilter::new();
            accepted.tools_list_changed = requested.tools_list_changed;
        }
        if let Some(resources) = &mut accepted.resource_subscriptions {
            resources.truncate(SUBSCRIPTIONS_MAX);
        }
        accepted
    }

    /// Serves `subscriptions/listen` (protocol 2026-07-28): notifies the AI client of changes until the client cancels
    /// the subscription or this process stops serving clients.
    pub(crate) async fn send_changes(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let principal = self.principal(request)?;
        let name = client_name(&principal, request);
        let abilities = InputSupport::default();
        let mut changes = self.engine.open(&principal, name, abilities, Request::FollowChanges).await;
        let mut resources = BTreeMap::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            if let Ok(server) = self.subscribe_upstream(uri, request).await {
                resources.insert(uri.clone(), server);
            }
        }
        let sink = context.sink();
        loop {
            let changed = tokio::select! {
                changed = next_change(&mut changes) => changed,
                () = context.cancelled() => None,
                () = self.closing.cancelled() => None,
            };
            let Some(changed) = changed else { return Ok(()) };
            // The sink drops notifications that the filter does not include.
            if changed.tools {
                let _ = sink.notify_tool_list_changed().await;
            }
            if changed.resources {
                let _ = sink.notify_resource_list_changed().await;
            }
            if changed.prompts {
                let _ = sink.notify_prompt_list_changed().await;
            }
            for (server, uri) in changed.updated {
                if resources.get(&uri) == Some(&server) {
                    let _ = sink.notify_resource_updated(uri).await;
                }
            }
            changes.send(Input::ChangesDelivered);
        }
    }

    /// Subscribes to a resource, or unsubscribes if `is_subscribed` is false, for an AI client of an older protocol
    /// version.
    pub(crate) async fn set_subscription(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
        is_subscribed: bool,
    ) -> Result<(), ErrorData> {
        let subscriptions = &self.direct.subscriptions;
        if !is_subscribed {
            subscriptions.resources().remove(uri);
            return Ok(());
        }
        if subscriptions.resources().len() >= SUBSCRIPTIONS_MAX {
            let message = format!("this client has {SUBSCRIPTIONS_MAX} resource subscriptions already");
            return Err(ErrorData::invalid_request(message, None));
        }
        let server = self.subscribe_upstream(uri, context).await?;
        subscriptions.resources().insert(uri.to_owned(), server);
        Ok(())
    }

    /// Subscribes to a resource at its upstream server, if the policy permits this AI client to read the
    /// resource. Returns the server.
    async fn subscribe_upstream(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerName, ErrorData> {
        let call = Call {
            target: DirectTarget::Resource(uri.to_owned()),
            action: DirectAction::Subscribe,
            arguments: JsonObject::new(),
            responses: None,
            state: None,
        };
        match self.call_direct(call, context, false).await? {
            Ok((server, _)) => Ok(server),
            Err(_) => Err(ErrorData::invalid_request(
                "the subscription requires approval, and none can be asked for here",
                None,
            )),
        }
    }
}

async fn notify(
    peer: &Peer<RoleServer>,
    changed: &ListChanges,
    updated: Vec<String>,
) -> Result<(), rmcp::ServiceError> {
    if changed.tools {
        peer.notify_tool_list_changed().await?;
    }
    if changed.resources {
        peer.notify_resource_list_changed().await?;
    }
    if changed.prompts {
        peer.notify_prompt_list_changed().await?;
    }
    for uri in updated {
        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
    }
    Ok(())
}
