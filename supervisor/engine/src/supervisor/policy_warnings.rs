//! Warnings in the log about lines of the policy that have no effect: they name a tool or a parameter that its server does
//! not have. They come once the servers are connected, at the start and after each reload.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_catalog::{Catalogue, unmatched};
use lockhouse_policies::Policy;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ToolSelection, Upstreams, remembered};

use super::{Settings, Supervisor};

impl Supervisor {
    /// The same as [`Supervisor::warn_about_policy`], of the settings with which this was started.
    pub fn warn_about_first_policy(&self) {
        self.warn_about_policy(&self.settings.clone());
    }

    /// Warns later, of the policy and the servers that are in force now.
    pub(super) fn warn_about_policy(&self, settings: &Settings) {
        let gate = self.gate();
        let (policy, upstreams) = (gate.policy(), gate.upstreams().clone());
        let (servers, places) = (settings.servers.clone(), settings.places.clone());
        let closing = self.life.closing().clone();
        tokio::spawn(async move {
            let warning = async {
                let known = |name: &ServerName| remembered(name, servers.get(name)?, &places);
                warn(&policy, &upstreams, &servers, known).await;
            };
            tokio::select! {
                () = warning => {}
                () = closing.cancelled() => {}
            }
        });
    }
}

async fn warn(
    policy: &Policy,
    upstreams: &Upstreams,
    servers: &BTreeMap<ServerName, ServerDefinition>,
    remembered: impl Fn(&ServerName) -> Option<Catalogue>,
) {
    let mentioned = policy.servers().filter(|name| servers.contains_key(*name));
    futures_util::future::join_all(mentioned.map(async |server| {
        let Some(connection) = upstreams.get(server) else { return };
        let live = connection.settled().await;
        // A connection knows what the configuration admits alone; a tool that is switched off is no mistake of the policy.
        let selects = servers.get(server).is_some_and(|server| server.tools != ToolSelection::default());
        let remembered = || remembered(server).map(Arc::new);
        let catalogue = if selects { remembered().or(live) } else { live.or_else(remembered) };
        let Some(catalogue) = catalogue else { return };
        for warning in unmatched(policy, server, &catalogue).0 {
            tracing::warn!("{}", warning.short());
        }
    }))
    .await;
}
