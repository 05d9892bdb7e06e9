//! AI clients are told when what they have directly changes.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::{Changed, Event, Input, Response};
use lockhouse_upstream::Notice;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use crate::direct::Client;
use crate::supervisor::Supervisor;

/// Changes that come together are told together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Tells one client what changes of what it is shown, for as long as somebody follows it.
pub(super) async fn follow(
    supervisor: &Arc<Supervisor>,
    client: &Client,
    exchange: &mut Exchange,
    over: &CancellationToken,
) -> Option<Response> {
    let mut notices = supervisor.gate().upstreams().notices().listen();
    let mut seen = supervisor.direct().tools_digest(supervisor, client).await;
    loop {
        let changed = tokio::select! {
            changed = next(&mut notices) => changed,
            () = exchange.closed() => None,
            () = over.cancelled() => None,
        };
        let mut changed = changed?;
        let shown = supervisor.direct().tools_digest(supervisor, client).await;
        changed.tools = changed.tools && std::mem::replace(&mut seen, shown) != seen;
        if changed == Changed::default() {
            continue;
        }
        exchange.send(Event::Changed(changed));
        while !matches!(exchange.input().await?, Input::Told) {}
    }
}

fn add(changed: &mut Changed, notice: Notice) {
    match notice {
        Notice::Tools => changed.tools = true,
        Notice::Resources => changed.resources = true,
        Notice::Prompts => changed.prompts = true,
        Notice::Resource(server, uri) => {
            let resource = (server, uri);
            if !changed.updated.contains(&resource) {
                changed.updated.push(resource);
            }
        }
        Notice::Everything => (changed.tools, changed.resources, changed.prompts) = (true, true, true),
    }
}

/// The next changes, as many as come together. None when there will be no more.
async fn next(notices: &mut Receiver<Notice>) -> Option<Changed> {
    let mut changed = Changed::default();
    let mut take = |received: Result<Notice, RecvError>| match received {
        Ok(notice) => {
            add(&mut changed, notice);
            true
        }
        Err(RecvError::Lagged(_)) => {
            add(&mut changed, Notice::Everything);
            true
        }
        Err(RecvError::Closed) => false,
    };
    if !take(notices.recv().await) {
        return None;
    }
    let together = async { while take(notices.recv().await) {} };
    let _ = tokio::time::timeout(TOGETHER, together).await;
    Some(changed)
}
