//! Notifies AI clients of two kinds of changes. First, changes to the tool definitions that an AI client gets; the
//! definition of `run_code` names the servers and tools for programs. Second, changes to the prompts and resources of
//! upstream servers with `direct` access.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{Event, Input, ListChanges, Response};
use lockhouse_upstream::ChangeNotice;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::exchange::EngineExchange;
use crate::supervisor::Supervisor;

/// Time after a change of an upstream server in which further changes are merged into the same notification.
const BATCH_WINDOW: Duration = Duration::from_millis(50);
/// Minimum time between two notifications to one AI client about changed tools. When many servers connect one after
/// another, the AI client thus gets few notifications.
const TOOL_CHANGES_EVERY: Duration = Duration::from_secs(1);

/// Notifies the front of the changes that concern one AI client, until the front closes the exchange or `cancellation`
/// is cancelled. The first notification has no changes: it tells the front that from now on none is missed. After each
/// notification, waits until the front has passed it on.
pub(super) async fn follow(
    supervisor: &Arc<Supervisor>,
    client: &Principal,
    exchange: &mut EngineExchange,
    cancellation: &CancellationToken,
) -> Option<Response> {
    let mut notices = supervisor.gate().upstreams().notices().subscribe();
    let mut seen = supervisor.tools_digest(client).await;
    let mut quiet_until = Instant::now();
    exchange.send(Event::Changed(ListChanges::default())).await;
    while !matches!(exchange.input().await?, Input::ChangesDelivered) {}
    loop {
        let changed = tokio::select! {
            changed = next(&mut notices, quiet_until) => changed,
            () = exchange.closed() => None,
            () = cancellation.cancelled() => None,
        };
        let mut changed = changed?;
        if supervisor.gate().direct_servers().next().is_none() {
            // Only servers with `direct` access have resources and prompts for AI clients.
            changed = ListChanges { tools: changed.tools, ..ListChanges::default() };
        }
        if changed.tools {
            let shown = supervisor.tools_digest(client).await;
            changed.tools = std::mem::replace(&mut seen, shown) != seen;
            quiet_until = Instant::now() + TOOL_CHANGES_EVERY;
        }
        if changed == ListChanges::default() {
            continue;
        }
        exchange.send(Event::Changed(changed)).await;
        while !matches!(exchange.input().await?, Input::ChangesDelivered) {}
    }
}

fn merge(changed: &mut ListChanges, notice: ChangeNotice) {
    match notice {
        ChangeNotice::Tools => changed.tools = true,
        ChangeNotice::Resources => changed.resources = true,
        ChangeNotice::Prompts => changed.prompts = true,
        ChangeNotice::Resource(server, uri) => {
            let resource = (server, uri);
            if !changed.updated.contains(&resource) {
                changed.updated.push(resource);
            }
        }
        ChangeNotice::Everything => (changed.tools, changed.resources, changed.prompts) = (true, true, true),
    }
}

/// Waits for a change notice of an upstream server. Merges it with the notices that follow within [`BATCH_WINDOW`] or
/// before `quiet_until`, whichever ends later. Returns `None` when no more notices can come.
async fn next(notices: &mut Receiver<ChangeNotice>, quiet_until: Instant) -> Option<ListChanges> {
    let mut changed = ListChanges::default();
    let mut take = |received: Result<ChangeNotice, RecvError>| match received {
        Ok(notice) => {
            merge(&mut changed, notice);
            true
        }
        Err(RecvError::Lagged(_)) => {
            merge(&mut changed, ChangeNotice::Everything);
            true
        }
        Err(RecvError::Closed) => false,
    };
    if !take(notices.recv().await) {
        return None;
    }
    let batch = async { while take(notices.recv().await) {} };
    let end = quiet_until.max(Instant::now() + BATCH_WINDOW);
    let _ = tokio::time::timeout_at(end, batch).await;
    Some(changed)
}
