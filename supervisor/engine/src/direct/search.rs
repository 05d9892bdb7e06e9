//! Searches the tools of upstream servers that AI clients call directly and that code cannot import.

use std::time::Duration;

use lockhouse_base::principal::Principal;
use lockhouse_gate::{Search, SearchResult};
use lockhouse_protocol::ServerName;

use super::DirectServers;
use crate::supervisor::Supervisor;

impl DirectServers {
    /// Searches the tools that this AI client can only call directly. Each result has the member `direct`: the name under
    /// which the client calls the tool.
    pub(crate) async fn search(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        search: Search<'_>,
    ) -> SearchResult {
        let gate = supervisor.gate();
        let scope = gate.direct_only_scope(client);
        if scope.servers().is_empty() {
            return SearchResult::default();
        }
        let mut found = gate.search(&scope, client.client(), search).await;
        let names = self.tool_names(supervisor, Duration::ZERO).await;
        found.tools.retain_mut(|tool| {
            let server = tool["server"].as_str().and_then(|name| ServerName::new(name).ok());
            let name = tool.get("tool").or(tool.get("name")).and_then(|name| name.as_str());
            let exposed = server.zip(name).and_then(|(server, name)| names.exposed_name(&server, name));
            let exposed = exposed.map(str::to_owned);
            if let (Some(members), Some(exposed)) = (tool.as_object_mut(), &exposed) {
                members.insert("direct".into(), exposed.as_str().into());
            }
            exposed.is_some()
        });
        found
    }
}
