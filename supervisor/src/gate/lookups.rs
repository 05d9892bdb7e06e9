//! What may be known of servers and tools: only what the policy permits, but for people at the command line.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lockhouse_policies::{Call, ClientName, Decision, Effect, Policy};
use lockhouse_protocol::{Failure, FailureCode, Reply, ServerName, ToolName};
use serde_json::{Value, json};

use super::{Briefs, Gate, Requester, about, arguments, cut, denied, failure};
use crate::catalog::{self, Catalogue, Tool};
use crate::upstream::{Connection, State};

/// How long a search waits for servers that are starting.
const SEARCH_PATIENCE: Duration = Duration::from_secs(2);
/// Tools that one search gives at most.
const FOUND_MAX: usize = 50;
/// Answers to `ListTools` that are kept.
const BRIEFS_MAX: usize = 256;

/// What the policy says of a tool; `None` where that depends on a call's arguments. For people, never for code.
pub(crate) fn standing(policy: &Policy, server: &ServerName, tool: &ToolName) -> Option<Effect> {
    policy.certain(server, &tool.into(), None)
}

/// The same in a word.
pub(crate) fn in_a_word(standing: Option<Effect>) -> &'static str {
    standing.map_or("depends", Effect::as_str)
}

impl Gate {
    /// Every tool of every connected server, and what the policy says of it. For people, never for code.
    pub(crate) fn every_tool(&self) -> Vec<(&ServerName, Tool, Option<Effect>)> {
        let mut tools = Vec::new();
        for (server, connection) in self.upstreams.iter() {
            let Some(catalogue) = connection.known() else { continue };
            let row = |tool: &Tool| (server, tool.clone(), standing(&self.policy, server, &tool.name));
            tools.extend(catalogue.tools.iter().map(row));
        }
        tools
    }

    /// Servers that cannot be used now, each with its reason.
    pub(crate) fn unavailable(&self, servers: &[ServerName]) -> Vec<String> {
        let told = |name: &ServerName| match self.upstreams.get(name)?.state() {
            State::Connected(_) => None,
            State::Idle => None,
            State::Connecting => Some(format!("{name}: still connecting")),
            State::Failed(reason) => {
                let stale = self.upstreams.get(name)?.known().map(|_| " (its tools are shown as they were)");
                Some(format!("{name}: {}{}", cut(&reason), stale.unwrap_or_default()))
            }
        };
        servers.iter().filter_map(told).collect()
    }

    pub(super) fn list_servers(&self, from: &Requester) -> Reply {
        let row = |name: &ServerName| {
            let connection = self.upstreams.get(name);
            let (state, tools, error) = match connection.map(Connection::state) {
                Some(State::Connected(offer)) => {
                    ("connected", self.permitted(name, &offer.catalogue, from.client()).count(), None)
                }
                Some(State::Failed(reason)) => ("failed", 0, Some(reason)),
                Some(State::Idle) => {
                    let known = connection.and_then(Connection::known);
                    (
                        "idle",
                        known.map_or(0, |known| self.permitted(name, &known, from.client()).count()),
                        None,
                    )
                }
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
        let catalogue = self.connection(from, server)?.catalogue().await?;
        let of = (server.clone(), from.caller.client.clone());
        let mut known = self.briefs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(briefs) = known.get(&of).filter(|briefs| Arc::ptr_eq(&briefs.of, &catalogue)) {
            return Ok(briefs.json.to_vec());
        }
        let brief = |tool: &Tool| tool.brief(self.policy.asks(server, &tool.name, from.client()));
        let json = self.permitted(server, &catalogue, from.client()).map(brief).collect::<Value>();
        let json: Arc<[u8]> = json.to_string().into_bytes().into();
        // Clients choose their names.
        if known.len() >= BRIEFS_MAX {
            known.clear();
        }
        known.insert(of, Briefs { of: catalogue.clone(), json: json.clone() });
        Ok(json.to_vec())
    }

    pub(super) async fn describe(&self, from: &Requester, server: &ServerName, tool: &ToolName) -> Reply {
        let named = |failure| about(failure, server, &tool.into());
        let connection = self.connection(from, server).map_err(named)?;
        // The same words as for a call; but none was asked for, so there is no record.
        let asked = Call::new(server, tool).by(from.caller.client.clone());
        if !self.policy.permits(server, tool, from.client())
            && let Decision::Deny(denial) = self.policy.decide(asked)
        {
            let slip = self.misnamed(from, server, tool, connection);
            return Err(named(slip.unwrap_or_else(|| denied(&denial))));
        }
        let catalogue = connection.catalogue().await?;
        let definition =
            catalogue.tool(tool).ok_or_else(|| named(self.unknown_tool(from, server, tool, &catalogue)))?;
        let asks = self.policy.asks(server, tool, from.client());
        Ok(definition.full(server.as_str(), asks).to_string().into_bytes())
    }

    /// Permitted tools that match, best first, of servers that are connected or become so in time.
    pub(crate) async fn search(
        &self,
        servers: &[ServerName],
        client: Option<&ClientName>,
        query: &str,
        limit: usize,
        full: bool,
    ) -> Vec<Value> {
        let connections = servers.iter().filter_map(|name| Some((name, self.upstreams.get(name)?)));
        let catalogues = futures_util::future::join_all(connections.map(async |(name, connection)| {
            let catalogue = tokio::time::timeout(SEARCH_PATIENCE, connection.catalogue());
            Some((name, catalogue.await.ok()?.ok()?))
        }));
        let catalogues: Vec<_> = catalogues.await.into_iter().flatten().collect();
        let tools: Vec<(&ServerName, &Tool)> = catalogues
            .iter()
            .flat_map(|(name, catalogue)| {
                self.permitted(name, catalogue, client).map(move |tool| (*name, tool))
            })
            .collect();
        let named: Vec<(&str, &Tool)> = tools.iter().map(|(name, tool)| (name.as_str(), *tool)).collect();
        let ranked = catalog::rank(query, &named).await.into_iter().take(limit.clamp(1, FOUND_MAX));
        let show = |(server, tool): (&ServerName, &Tool)| {
            let asks = self.policy.asks(server, &tool.name, client);
            if full { tool.full(server.as_str(), asks) } else { tool.found(server.as_str(), asks) }
        };
        ranked.map(|index| show(tools[index])).collect()
    }

    fn permitted<'a>(
        &'a self,
        server: &'a ServerName,
        catalogue: &'a Catalogue,
        client: Option<&'a ClientName>,
    ) -> impl Iterator<Item = &'a Tool> {
        let usable = move |tool: &&Tool| {
            self.policy.permits(server, &tool.name, client) && !self.withholds(server, tool, client)
        };
        catalogue.tools.iter().filter(usable)
    }

    pub(super) fn unknown_tool(
        &self,
        from: &Requester,
        server: &ServerName,
        tool: &ToolName,
        catalogue: &Catalogue,
    ) -> Failure {
        let permitted: Vec<&str> =
            self.permitted(server, catalogue, from.client()).map(|other| other.name.as_str()).collect();
        let meant = match arguments::nearest(tool.as_str(), permitted.iter().copied()) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("permitted are: {}", permitted[..permitted.len().min(30)].join(", ")),
        };
        failure(FailureCode::UnknownTool, format!("server {server} has no tool {tool}; {meant}"))
    }

    /// A name that the server does not have is a slip, and no matter for whoever writes the policy.
    pub(super) fn misnamed(
        &self,
        from: &Requester,
        server: &ServerName,
        tool: &ToolName,
        connection: &Connection,
    ) -> Option<Failure> {
        let catalogue = connection.known()?;
        catalogue.tool(tool).is_none().then(|| self.unknown_tool(from, server, tool, &catalogue))
    }
}
