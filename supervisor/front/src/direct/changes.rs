//! AI clients are told when what they have directly changes: in the newest era those that listen, before it all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_messages::{Abilities, Action, Changed, Event, Exchange, Input, Request, Step, Target};
use lockhouse_protocol::ServerName;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ErrorData, JsonObject, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Call;
use crate::{Front, client};

/// Resources that one client may follow.
const FOLLOWED_MAX: usize = 100;

/// What belongs to one connection, as long as it lasts.
#[derive(Clone)]
pub(crate) struct Connected(Arc<OfOne>);

struct OfOne {
    over: CancellationToken,
    _guard: DropGuard,
    /// Resources that the client follows, each with its server.
    followed: Mutex<BTreeMap<String, ServerName>>,
}

impl Default for Connected {
    fn default() -> Self {
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        Self(Arc::new(OfOne { over, _guard: guard, followed: Mutex::default() }))
    }
}

impl Connected {
    fn followed(&self) -> MutexGuard<'_, BTreeMap<String, ServerName>> {
        self.0.followed.lock()
    }
}

/// The next changes. None when there will be no more.
async fn next(changes: &mut Exchange) -> Option<Changed> {
    loop {
        match changes.next().await {
            Step::Event(Event::Changed(changed)) => return Some(changed),
            Step::Event(_) => {}
            Step::Over(_) => return None,
        }
    }
}

impl Front {
    /// Tells a client of an older era what changes, from now on.
    pub(crate) fn follow_changes(&self, context: &NotificationContext<RoleServer>) {
        let Some(principal) = self.door.principal(&context.extensions) else { return };
        let (peer, over) = (context.peer.clone(), self.direct.connected.0.over.clone());
        // Without what belongs to the connection, or that would last as long as this.
        let connected = Arc::downgrade(&self.direct.connected.0);
        let closing = self.closing.clone();
        let name = principal.client(peer.peer_info().map(|info| info.client_info.name.clone()).as_deref());
        let mut changes = self.engine.open(&principal, name, Abilities::default(), Request::FollowChanges);
        tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    changed = next(&mut changes) => changed,
                    () = over.cancelled() => return,
                    () = closing.cancelled() => return,
                };
                let Some(changed) = changed else { return };
                let Some(connected) = connected.upgrade().map(Connected) else { return };
                let followed = |(server, uri): &(ServerName, String)| {
                    connected.followed().get(uri).is_some_and(|of| of == server)
                };
                let updated: Vec<String> =
                    changed.updated.iter().filter(|of| followed(of)).map(|(_, uri)| uri.clone()).collect();
                drop(connected);
                if tell(&peer, &changed, updated).await.is_err() {
                    return;
                }
                changes.send(Input::Told);
            }
        });
    }

    /// Which of what a client asks for it can be told.
    pub(crate) fn accepted(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if !self.has_direct() {
            return None;
        }
        let mut accepted = requested.clone();
        if let Some(resources) = &mut accepted.resource_subscriptions {
            resources.truncate(FOLLOWED_MAX);
        }
        Some(accepted)
    }

    /// Tells a client of the newest era what it asked to be told, until it or we end that.
    pub(crate) async fn tell_changes(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let principal = self.principal(request)?;
        let name = client(&principal, request);
        let mut changes = self.engine.open(&principal, name, Abilities::default(), Request::FollowChanges);
        let mut followed = BTreeMap::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            if let Ok(server) = self.follow_resource(uri, request).await {
                followed.insert(uri.clone(), server);
            }
        }
        let sink = context.sink();
        loop {
            let changed = tokio::select! {
                changed = next(&mut changes) => changed,
                () = context.cancelled() => None,
                () = self.closing.cancelled() => None,
            };
            let Some(changed) = changed else { return Ok(()) };
            // What was not asked for is refused by the sink, and that is as it should be.
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
                if followed.get(&uri) == Some(&server) {
                    let _ = sink.notify_resource_updated(uri).await;
                }
            }
            changes.send(Input::Told);
        }
    }

    /// Follows a resource for a client of an older era, or not any more.
    pub(crate) async fn subscribe_directly(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
        wanted: bool,
    ) -> Result<(), ErrorData> {
        let connected = &self.direct.connected;
        if !wanted {
            connected.followed().remove(uri);
            return Ok(());
        }
        if connected.followed().len() >= FOLLOWED_MAX {
            let told = format!("this client follows {FOLLOWED_MAX} resources already");
            return Err(ErrorData::invalid_request(told, None));
        }
        let server = self.follow_resource(uri, context).await?;
        connected.followed().insert(uri.to_owned(), server);
        Ok(())
    }

    /// Has the server tell of changes of a resource, which is decided about as reading it is.
    async fn follow_resource(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerName, ErrorData> {
        let call = Call {
            target: Target::Resource(uri.to_owned()),
            action: Action::Subscribe,
            arguments: JsonObject::new(),
            responses: None,
            state: None,
        };
        match self.passed(call, context, false).await? {
            Ok((server, _)) => Ok(server),
            Err(_) => Err(ErrorData::invalid_request("a person would have to be asked", None)),
        }
    }
}

async fn tell(
    peer: &Peer<RoleServer>,
    changed: &Changed,
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
