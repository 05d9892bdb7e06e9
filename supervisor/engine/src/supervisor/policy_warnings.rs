//! Warns in the log about policy rules that have no effect, because they name a tool or a parameter that the upstream
//! server does not have. The rules are checked once the upstream servers are connected, at the start and after each
//! reload.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_catalog::{Catalogue, unmatched_rules};
use lockhouse_policies::Policy;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ToolSelection, Upstreams, cached_tools};

use super::{EngineSettings, Supervisor};

impl Supervisor {
    /// Starts a task that checks the policy with which this process was started, and logs a warning for each rule that
    /// has no effect.
    pub fn warn_about_first_policy(&self) {
        self.warn_about_policy(&self.settings.clone());
    }

    /// Starts a task that compares the active policy with the tools of the upstream servers in `settings`, and logs a
    /// warning for each rule that names a tool or a parameter that its server does not have.
    pub(super) fn warn_about_policy(&self, settings: &EngineSettings) {
        let gate = self.gate();
        let (policy, upstreams) = (gate.policy(), gate.upstreams().clone());
        let (servers, places) = (settings.servers.clone(), settings.places.clone());
        let closing = self.lifecycle.closing().clone();
        tokio::spawn(async move {
            let warning = async {
                let known = |name: &ServerName| cached_tools(name, servers.get(name)?, &places);
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
    cached_tools: impl Fn(&ServerName) -> Option<Catalogue>,
) {
    let mentioned = policy.servers().filter(|name| servers.contains_key(*name));
    futures_util::future::join_all(mentioned.map(async |server| {
        let Some(connection) = upstreams.get(server) else { return };
        let live = connection.settled_catalogue().await;
        // A live connection has only the tools that the configuration selects. A rule about a tool that is switched
        // off must not cause a warning, so the remembered catalogue comes first here.
        let selects = servers.get(server).is_some_and(|server| server.tools != ToolSelection::default());
        let cached_tools = || cached_tools(server).map(Arc::new);
        let catalogue = if selects { cached_tools().or(live) } else { live.or_else(cached_tools) };
        let Some(catalogue) = catalogue else { return };
        for warning in unmatched_rules(policy, server, &catalogue).0 {
            tracing::warn!("{}", warning.to_single_line());
        }
    }))
    .await;
}
