//! Notifies AI clients of changes to the list of tools, and to the resources and prompts of directly exposed servers.
//! From protocol 2026-07-28 on, an AI client gets the changes to which it subscribes. A client of an older protocol
//! version gets all list changes, and the updates of the resources to which it subscribes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use lockhouse_link::{Exchange, ExchangeStep};
use lockhouse_mcp::server::{ClientConnection, RequestContext, RequestHandler};
use lockhouse_messages::{DirectAction, DirectTarget, Event, Input, InputSupport, ListChanges, Request};
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use rmcp::model::{
    ErrorData, GetMeta, JsonObject, PromptListChangedNotification, ResourceListChangedNotification,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification, ServerResult,
    SubscriptionFilter, SubscriptionsAcknowledgedNotification, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenResult, ToolListChangedNotification,
};
use tokio::time::timeout;

use super::Call;
use crate::{McpHandler, client_name};

/// Maximum number of resource subscriptions of one connection, or of one `subscriptions/listen` request.
/// Bound: AI clients.
const SUBSCRIPTIONS_MAX: usize = 100;

/// How long an acknowledgment of a subscription waits until the engine follows the changes. An engine of an earlier version
/// does not say that it does.
/// Bound: AI clients.
const FOLLOWING_TIMEOUT: Duration = Duration::from_secs(2);

/// The URIs of the resources to which a connection has subscribed, each with its upstream server. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ConnectionSubscriptions(Arc<Mutex<BTreeMap<String, ServerName>>>);

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

/// Returns the notifications of a change that a subscription includes. `resources` are the resources of the subscription.
fn notifications(
    changed: ListChanges,
    filter: &SubscriptionFilter,
    resources: &BTreeMap<String, ServerName>,
) -> Vec<ServerNotification> {
    let mut all = Vec::new();
    if changed.tools && filter.tools_list_changed == Some(true) {
        all.push(ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default()));
    }
    if changed.resources && filter.resources_list_changed == Some(true) {
        let notification = ResourceListChangedNotification::default();
        all.push(ServerNotification::ResourceListChangedNotification(notification));
    }
    if changed.prompts && filter.prompts_list_changed == Some(true) {
        all.push(ServerNotification::PromptListChangedNotification(PromptListChangedNotification::default()));
    }
    let updated = changed.updated.into_iter().filter(|(server, uri)| resources.get(uri) == Some(server));
    all.extend(updated.map(|(_, uri)| {
        let parameters = ResourceUpdatedNotificationParam::new(uri);
        ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(parameters))
    }));
    all
}

impl McpHandler {
    /// Starts to notify an AI client of an older protocol version of all list changes and of updates of subscribed
    /// resources, until its connection closes. `http` is the head of the HTTP request that ended its handshake.
    pub(crate) fn follow_changes(&self, connection: &ClientConnection, http: Option<&Arc<Parts>>) {
        let Some(access) = self.transport.access(http) else { return };
        let name = connection.client().map(|client| client.client_info.name.clone());
        let name = access.client(name.as_deref());
        let (channel, closing) = (connection.channel(), connection.closing().clone());
        let (engine, subscriptions) = (self.engine.clone(), self.direct.subscriptions.clone());
        let mut all = SubscriptionFilter::new();
        all.tools_list_changed = Some(true);
        all.resources_list_changed = Some(true);
        all.prompts_list_changed = Some(true);
        let following = async move {
            let mut changes =
                engine.open(&access, name, InputSupport::default(), Request::FollowChanges).await;
            while let Some(changed) = next_change(&mut changes).await {
                let notifications = notifications(changed, &all, &subscriptions.0.lock());
                for notification in notifications {
                    if channel.notify(notification).await.is_err() {
                        return;
                    }
                }
                changes.send(Input::ChangesDelivered);
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = following => {}
                () = closing.cancelled() => {}
            }
        });
    }

    /// Returns the part of a subscription filter that Lockhouse accepts. If no server is exposed directly,
    /// this is only the subscription to changes of the list of tools.
    fn accepted_filter(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        if !self.has_direct() {
            accepted = SubscriptionFilter::new();
            accepted.tools_list_changed = requested.tools_list_changed;
        }
        if let Some(resources) = &mut accepted.resource_subscriptions {
            resources.truncate(SUBSCRIPTIONS_MAX);
        }
        accepted.supported_by(&self.info().capabilities)
    }

    /// Serves `subscriptions/listen` (protocol 2026-07-28): notifies the AI client of changes until the client cancels
    /// the subscription or this process stops serving clients.
    pub(crate) async fn send_changes(
        &self,
        requested: &SubscriptionFilter,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        let access = self.access(context)?;
        let accepted = self.accepted_filter(requested);
        let notify = async |mut notification: ServerNotification| {
            notification.get_meta_mut().set_subscription_id(context.id.clone());
            context.notify(notification).await;
        };
        let parameters = SubscriptionsAcknowledgedNotificationParams::new(accepted.clone());
        let acknowledgment = SubscriptionsAcknowledgedNotification::new(parameters);
        let name = client_name(&access, context);
        let abilities = InputSupport::default();
        let mut changes = self.engine.open(&access, name, abilities, Request::FollowChanges).await;
        // A client that asks for a list after the acknowledgment must not miss the next change of it.
        if let Ok(Some(_nothing)) = timeout(FOLLOWING_TIMEOUT, next_change(&mut changes)).await {
            changes.send(Input::ChangesDelivered);
        }
        notify(ServerNotification::SubscriptionsAcknowledgedNotification(acknowledgment)).await;
        let mut resources = BTreeMap::new();
        for uri in accepted.resource_subscriptions.iter().flatten() {
            if let Ok(server) = self.subscribe_upstream(uri, context).await {
                resources.insert(uri.clone(), server);
            }
        }
        loop {
            let changed = tokio::select! {
                changed = next_change(&mut changes) => changed,
                () = context.cancelled.cancelled() => None,
                () = self.closing.cancelled() => None,
            };
            let Some(changed) = changed else { break };
            for notification in notifications(changed, &accepted, &resources) {
                notify(notification).await;
            }
            changes.send(Input::ChangesDelivered);
        }
        let mut result = SubscriptionsListenResult::complete(context.id.clone());
        result.meta.set_server_info(self.info().server_info);
        Ok(context.to_text(ServerResult::SubscriptionsListenResult(result)))
    }

    /// Subscribes to a resource, or unsubscribes if `is_subscribed` is false, for an AI client of an older protocol
    /// version.
    pub(crate) async fn set_subscription(
        &self,
        uri: &str,
        context: &RequestContext,
        is_subscribed: bool,
    ) -> Result<String, ErrorData> {
        self.require_direct_servers(if is_subscribed {
            "resources/subscribe"
        } else {
            "resources/unsubscribe"
        })?;
        let subscriptions = &self.direct.subscriptions;
        if !is_subscribed {
            subscriptions.0.lock().remove(uri);
            return Ok("{}".to_owned());
        }
        if subscriptions.0.lock().len() >= SUBSCRIPTIONS_MAX {
            let message = format!("this client has {SUBSCRIPTIONS_MAX} resource subscriptions already");
            return Err(ErrorData::invalid_request(message, None));
        }
        let server = self.subscribe_upstream(uri, context).await?;
        subscriptions.0.lock().insert(uri.to_owned(), server);
        Ok("{}".to_owned())
    }

    /// Subscribes to a resource at its upstream server, if the policy permits this AI client to read the
    /// resource. Returns the server.
    async fn subscribe_upstream(&self, uri: &str, context: &RequestContext) -> Result<ServerName, ErrorData> {
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
