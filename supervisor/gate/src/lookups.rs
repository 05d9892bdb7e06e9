//! What may be known of servers and tools: only what the policy permits, but for people at the command line.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_catalog::{Catalogue, Told, Tool};
use lockhouse_policies::{Call, ClientName, Decision, Effect, Item, OnChange, Place, Policy};
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, ServerName, ToolName};
use lockhouse_upstream::{Connection, State};
use serde_json::{Value, json};

use super::asked::Asked;
use super::denials::denied;
use super::failures::{about, cut, failure};
use super::scope::Scope;
use super::{Gate, Requester};

/// What the policy says of a tool; `None` where that depends on a call's arguments. For people, never for code.
pub fn standing(policy: &Policy, server: &ServerName, tool: &ToolName) -> Option<Effect> {
    policy.certain(server, &tool.into(), None)
}

/// The same in a word.
pub fn in_a_word(standing: Option<Effect>) -> &'static str {
    standing.map_or("depends", Effect::as_str)
}

impl Gate {
    /// Every tool of every connected server, and what the policy says of it. For people, never for code.
    pub fn every_tool(&self) -> Vec<(&ServerName, Tool, Option<Effect>)> {
        let policy = self.policy.now();
        let mut tools = Vec::new();
        for (server, connection) in self.upstreams.iter() {
            let Some(catalogue) = connection.known() else { continue };
            let row = |tool: &Tool| (server, tool.clone(), standing(&policy, server, &tool.name));
            tools.extend(catalogue.tools.iter().map(row));
        }
        tools
    }

    /// The tools that may be called of a server, each with whether a person is asked, if any are known. For people, never
    /// for code.
    pub fn permitted_tools(&self, server: &ServerName) -> Option<Vec<(Tool, bool)>> {
        let catalogue = self.upstreams.get(server)?.known()?;
        let (policy, scope) = (self.policy.now(), Scope::all(self.servers()));
        let row = |tool: &Tool| (tool.clone(), policy.asks(server, &tool.name, None));
        Some(self.permitted(server, &catalogue, None, &scope).map(row).collect())
    }

    /// Servers that cannot be used now and whose tools are shown as they were, each with its reason.
    pub fn outdated_servers(&self, servers: &[ServerName]) -> Vec<String> {
        let told = |name: &ServerName| {
            let connection = self.upstreams.get(name)?;
            connection.known()?;
            let reason = match connection.state() {
                State::Connected(_) | State::Idle => return None,
                State::Connecting => "still connecting".to_owned(),
                State::Failed(reason) => cut(&reason),
            };
            Some(format!("{name}: {reason} (its tools are shown as they were)"))
        };
        servers.iter().filter_map(told).collect()
    }

    pub(super) fn list_servers(&self, from: &Requester) -> Reply {
        let row = |name: &ServerName| {
            let connection = self.upstreams.get(name);
            let (state, tools, error) = match connection.map(Connection::state) {
                Some(State::Connected(offer)) => (
                    "connected",
                    self.permitted(name, &offer.catalogue, from.client(), &from.scope).count(),
                    None,
                ),
                Some(State::Failed(reason)) => ("failed", 0, Some(reason)),
                Some(State::Idle) => {
                    let known = connection.and_then(Connection::known);
                    let count = |known: &Arc<Catalogue>| {
                        self.permitted(name, known, from.client(), &from.scope).count()
                    };
                    ("idle", known.as_ref().map_or(0, count), None)
                }
                _ => ("connecting", 0, None),
            };
            let mut row = json!({"name": name.as_str(), "state": state, "tools": tools});
            if let Some(error) = error {
                row["error"] = cut(&error).into();
            }
            row
        };
        Ok(from.scope.servers().iter().map(row).collect::<Value>().to_string().into_bytes())
    }

    pub(super) async fn list_tools(&self, from: &Requester, server: &ServerName) -> Reply {
        let connection = self.connection(from, server)?;
        if !from.scope.servers().contains(server)
            && let Some(left_out) = from.scope.left_out()
        {
            return Err(left_out);
        }
        let catalogue = connection.catalogue().await?;
        let (key, policy) = ((server.clone(), from.caller.client.clone(), from.language), self.policy.now());
        let of_all = !from.scope.has_part_of(server);
        let known = of_all.then(|| self.briefs.get(&key, &catalogue, &policy)).flatten();
        telemetry::listed(known.is_some());
        if let Some(json) = known {
            return Ok(json.to_vec());
        }
        let brief = |tool: &Tool| {
            let asks = policy.asks(server, &tool.name, from.client());
            let observed = connection.shapes.observed(tool);
            tool.brief(&Told { asks, observed, language: from.language })
        };
        let permitted = self.permitted(server, &catalogue, from.client(), &from.scope);
        let json = permitted.map(brief).collect::<Value>().to_string().into_bytes();
        if of_all {
            self.briefs.keep(key, catalogue.clone(), policy, json.as_slice().into());
        }
        Ok(json)
    }

    /// The permitted tool that another form of its name stands for, if its server's tools are known.
    pub(super) fn tool_meant(
        &self,
        from: &Requester,
        server: &ServerName,
        tool: &ToolName,
    ) -> Option<ToolName> {
        let catalogue = self.upstreams.get(server)?.known()?;
        let meant = catalogue.meant(tool.as_str()).filter(|meant| meant.name != *tool)?;
        let is_permitted = |one: &Tool| one.name == meant.name;
        self.permitted(server, &catalogue, from.client(), &from.scope)
            .any(is_permitted)
            .then(|| meant.name.clone())
    }

    pub(super) async fn describe(
        &self,
        from: &Requester,
        call: CallId,
        server: &ServerName,
        tool: &ToolName,
    ) -> Reply {
        let meant = self.tool_meant(from, server, tool);
        let tool = meant.as_ref().unwrap_or(tool);
        let item = Item::from(tool);
        let named = |failure| about(failure, server, &item);
        let connection = self.connection(from, server).map_err(named)?;
        if let Some(left_out) = self.left_out(from, server, &item) {
            self.note_look(from, call, (server, tool), (&left_out.message, None));
            return Err(named(left_out));
        }
        // The same words as for a call.
        let asked = Call::new(server, tool).by(from.caller.client.clone());
        let policy = self.policy.now();
        if !policy.permits(server, tool, from.client())
            && let Decision::Deny(denial) = policy.decide(asked)
        {
            if let Some(slip) = self.misnamed(from, server, tool, connection.known()) {
                return Err(named(slip));
            }
            self.note_look(from, call, (server, tool), (&denial.to_string(), denial.place.as_ref()));
            return Err(named(denied(&denial)));
        }
        let catalogue = connection.catalogue().await?;
        let definition =
            catalogue.tool(tool).ok_or_else(|| named(self.unknown_tool(from, server, tool, &catalogue)))?;
        if let Some(reason) = self.withheld(from, server, definition) {
            self.note_look(from, call, (server, tool), (&reason, None));
            return Err(named(failure(FailureCode::Denied, reason)));
        }
        let asks = policy.asks(server, tool, from.client());
        let observed = connection.shapes.observed(definition);
        let told = Told { asks, observed, language: from.language };
        Ok(definition.described(server.as_str(), &told).to_string().into_bytes())
    }

    /// A look at a denied tool is a denial too: who wants to know what is tried sees it. Once for each tool and execution.
    fn note_look(
        &self,
        from: &Requester,
        call: CallId,
        (server, tool): (&ServerName, &ToolName),
        (reason, place): (&str, Option<&Place>),
    ) {
        if from.usage.looks_first_at(server, tool) {
            let asked = Asked::new(server.clone(), tool.into());
            self.note_denial(asked.subject(from, call), Effect::Deny, reason, place);
        }
    }

    fn permitted<'a>(
        &'a self,
        server: &'a ServerName,
        catalogue: &'a Catalogue,
        client: Option<&'a ClientName>,
        scope: &'a Scope,
    ) -> impl Iterator<Item = &'a Tool> {
        catalogue.tools.iter().filter(self.usable(server, client, scope))
    }

    /// Whether a tool of the server may be known of.
    pub(super) fn usable<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientName>,
        scope: &'a Scope,
    ) -> impl Fn(&&Tool) -> bool + 'a {
        let policy = self.policy.now();
        let takes_changes = self.on_change(server, client) == OnChange::Warn;
        move |tool| {
            (takes_changes || tool.change.is_none())
                && scope.has(server, &Item::from(&tool.name))
                && policy.permits(server, &tool.name, client)
        }
    }

    pub(super) fn unknown_tool(
        &self,
        from: &Requester,
        server: &ServerName,
        tool: &ToolName,
        catalogue: &Catalogue,
    ) -> Failure {
        let permitted: Vec<&str> = self
            .permitted(server, catalogue, from.client(), &from.scope)
            .map(|other| other.name.as_str())
            .collect();
        let meant = match lockhouse_policies::nearest(tool.as_str(), permitted.iter().copied()) {
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
        known: Option<Arc<Catalogue>>,
    ) -> Option<Failure> {
        let catalogue = known?;
        catalogue.tool(tool).is_none().then(|| self.unknown_tool(from, server, tool, &catalogue))
    }
}
