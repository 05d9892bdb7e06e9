//! What may be known of servers and tools: only what the policy permits, but for people at the command line.

use std::time::Duration;

use lockhouse_policies::Decision;
use lockhouse_protocol::{Failure, FailureCode, Reply, ServerName, ToolName};
use serde_json::{Value, json};

use super::{Gate, Requester, about, arguments, cut, denied, failure};
use crate::catalog::{self, Tool};
use crate::upstream::{Connection, Offer, State};

/// How long a search waits for servers that are starting.
const SEARCH_PATIENCE: Duration = Duration::from_secs(2);
/// Tools that one search gives at most.
const FOUND_MAX: usize = 50;

impl Gate {
    /// Every tool of every connected server, and whether the policy permits it. For people, never for code.
    pub(crate) fn every_tool(&self) -> Vec<(&ServerName, Tool, bool)> {
        let mut tools = Vec::new();
        for (server, connection) in self.upstreams.iter() {
            let State::Connected(offer) = connection.state() else { continue };
            let row = |tool: &Tool| (server, tool.clone(), self.policy.permits(server, &tool.name));
            tools.extend(offer.tools.iter().map(row));
        }
        tools
    }

    /// Servers that cannot be used now, each with its reason.
    pub(crate) fn unavailable(&self, servers: &[ServerName]) -> Vec<String> {
        let told = |name: &ServerName| match self.upstreams.get(name)?.state() {
            State::Connected(_) => None,
            State::Connecting => Some(format!("{name}: still connecting")),
            State::Failed(reason) => Some(format!("{name}: {}", cut(&reason))),
        };
        servers.iter().filter_map(told).collect()
    }

    pub(super) fn list_servers(&self, from: &Requester) -> Reply {
        let row = |name: &ServerName| {
            let (state, tools, error) = match self.upstreams.get(name).map(Connection::state) {
                Some(State::Connected(offer)) => ("connected", self.permitted(name, &offer).count(), None),
                Some(State::Failed(reason)) => ("failed", 0, Some(reason)),
                _ => ("connecting", 0, None),
            };
            let mut row = json!({"name": name.as_str(), "state": state, "tools": tools});
            if let Some(error) = error {
                row["error"] = cut(&error).into();
            }
            row
        };
        Ok(from.servers.iter().map(row).collect::<Value>().to_string().into_bytes())
    }

    pub(super) async fn list_tools(&self, from: &Requester, server: &ServerName) -> Reply {
        let offer = self.connection(from, server)?.offer().await?;
        let briefs =
            || self.permitted(server, &offer).map(Tool::brief).collect::<Value>().to_string().into_bytes();
        Ok(offer.briefs.get_or_init(briefs).clone())
    }

    pub(super) async fn describe(&self, from: &Requester, server: &ServerName, tool: &ToolName) -> Reply {
        let named = |failure| about(failure, server, tool);
        let connection = self.connection(from, server).map_err(named)?;
        // The same words as for a call; but none was asked for, so there is no record.
        if let Decision::Deny(denial) = self.policy.decide(server, tool) {
            return Err(named(self.misnamed(server, tool, connection).unwrap_or_else(|| denied(&denial))));
        }
        let offer = connection.offer().await?;
        let definition = offer.tool(tool).ok_or_else(|| named(self.unknown_tool(server, tool, &offer)))?;
        Ok(definition.full(server.as_str()).to_string().into_bytes())
    }

    /// Permitted tools that match, best first, of servers that are connected or become so in time.
    pub(crate) async fn search(
        &self,
        servers: &[ServerName],
        query: &str,
        limit: usize,
        full: bool,
    ) -> Vec<Value> {
        let connections = servers.iter().filter_map(|name| Some((name, self.upstreams.get(name)?)));
        let offers = futures_util::future::join_all(connections.map(async |(name, connection)| {
            let offer = tokio::time::timeout(SEARCH_PATIENCE, connection.offer());
            Some((name, offer.await.ok()?.ok()?))
        }));
        let offers: Vec<_> = offers.await.into_iter().flatten().collect();
        let tools: Vec<(&str, &Tool)> = offers
            .iter()
            .flat_map(|(name, offer)| self.permitted(name, offer).map(move |tool| (name.as_str(), tool)))
            .collect();
        let ranked = catalog::rank(query, &tools).await.into_iter().take(limit.clamp(1, FOUND_MAX));
        let show = |(server, tool): (&str, &Tool)| if full { tool.full(server) } else { tool.found(server) };
        ranked.map(|index| show(tools[index])).collect()
    }

    fn permitted<'a>(&'a self, server: &'a ServerName, offer: &'a Offer) -> impl Iterator<Item = &'a Tool> {
        offer.tools.iter().filter(move |tool| self.policy.permits(server, &tool.name))
    }

    pub(super) fn unknown_tool(&self, server: &ServerName, tool: &ToolName, offer: &Offer) -> Failure {
        let permitted: Vec<&str> = self.permitted(server, offer).map(|other| other.name.as_str()).collect();
        let meant = match arguments::nearest(tool.as_str(), permitted.iter().copied()) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("permitted are: {}", permitted[..permitted.len().min(30)].join(", ")),
        };
        failure(FailureCode::UnknownTool, format!("server {server} has no tool {tool}; {meant}"))
    }

    /// A name that the server does not have is a slip, and no matter for whoever writes the policy.
    pub(super) fn misnamed(
        &self,
        server: &ServerName,
        tool: &ToolName,
        connection: &Connection,
    ) -> Option<Failure> {
        let State::Connected(offer) = connection.state() else { return None };
        offer.tool(tool).is_none().then(|| self.unknown_tool(server, tool, &offer))
    }
}
