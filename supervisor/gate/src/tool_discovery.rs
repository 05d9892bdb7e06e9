//! Answers questions about the upstream servers and their tools. Programs see only the tools that the policy
//! permits; the user's `lockhouse` commands see all tools.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::{Call, CallTarget, ClientName, Decision, Effect, OnChange, Policy, SourceLocation};
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, ServerName, ToolName};
use lockhouse_upstream::ConnectionState;
use serde_json::{Value, json};

use super::code_server::CodeServer;
use super::denials::denial_failure;
use super::failures::{sanitize_message, with_names};
use super::scope::Scope;
use super::tool_request::ToolRequest;
use super::{Gate, RunContext};

/// Minimum number of letters in the last word of an unknown tool name for other tools with this word to be suggested.
const WORD_CHARS_MIN: usize = 4;

/// A request for information about a tool, without calling it: its description, or whether a planned call can
/// succeed.
#[derive(Clone, Copy)]
pub(super) struct ToolLookup<'a> {
    pub(super) run: &'a RunContext,
    /// The id of the worker's request.
    pub(super) call: CallId,
    pub(super) server: &'a ServerName,
    pub(super) tool: &'a ToolName,
    /// For a planned call: the line of the program that will make it, as reported by the worker. `None` if it is
    /// unknown, and for other lookups.
    pub(super) line: Option<u32>,
}

/// Returns the effect that the policy has on every call of a tool; `None` if the effect depends on the
/// arguments. The result must not reach programs; it is only for commands of the user.
pub fn unconditional_effect(policy: &Policy, server: &ServerName, tool: &ToolName) -> Option<Effect> {
    policy.certain_effect(server, &tool.into(), None)
}

/// Returns what a program learns about the state of a connection: the state, the number of permitted tools, and the error.
fn describe_state(
    state: ConnectionState,
    count: impl Fn(&Arc<Catalogue>) -> usize,
    known: impl Fn() -> usize,
) -> (&'static str, usize, Option<String>) {
    match state {
        ConnectionState::Connected(offer) => ("connected", count(&offer.catalogue), None),
        ConnectionState::Failed(reason) => ("failed", 0, Some(reason)),
        ConnectionState::Idle => ("idle", known(), None),
        ConnectionState::Connecting => ("connecting", 0, None),
    }
}

/// Returns the text that tables show for the effect of the policy on a tool. `None` means that the effect depends
/// on the arguments; the text is then `depends`.
pub fn effect_label(effect: Option<Effect>) -> &'static str {
    effect.map_or("depends", Effect::as_str)
}

impl Gate {
    /// Returns all known tools, each with its server and the effect that the policy has on every call of it;
    /// `None` if the effect depends on the arguments. The result must not reach programs; it is only for commands
    /// of the user.
    pub fn all_tools(&self) -> Vec<(&ServerName, Tool, Option<Effect>)> {
        let policy = self.policy.current();
        let mut tools = Vec::new();
        let settings = self.files.settings();
        let built_in = settings.is_on().then_some(&settings.name);
        for server in self.upstreams.iter().map(|(server, _)| server).chain(built_in) {
            let Some(catalogue) = self.code_server(server).and_then(CodeServer::known_catalogue) else {
                continue;
            };
            let row = |tool: &Tool| (server, tool.clone(), unconditional_effect(&policy, server, &tool.name));
            tools.extend(catalogue.tools.iter().map(row));
        }
        tools
    }

    /// Returns the permitted tools of an upstream server, each with whether its calls may require approval.
    /// Returns `None` if the tools of the server are not known. The result must not reach programs; it is only
    /// for commands of the user.
    pub fn permitted_tools(&self, server: &ServerName) -> Option<Vec<(Tool, bool)>> {
        let catalogue = self.code_server(server)?.known_catalogue()?;
        let (policy, scope) = (self.policy.current(), Scope::all(self.code_servers()));
        let row = |tool: &Tool| (tool.clone(), policy.may_require_approval(server, &tool.name, None));
        Some(self.permitted_tools_of(server, &catalogue, None, &scope).map(row).collect())
    }

    /// Returns a text for each of the given servers that is not connected and whose tools are known only from an
    /// earlier connection. The text contains the server's name and why it is not connected. Omits idle servers,
    /// which connect when they are needed.
    pub fn stale_servers(&self, servers: &[ServerName]) -> Vec<String> {
        let describe_stale = |name: &ServerName| {
            let connection = self.upstreams.get(name)?;
            connection.known_catalogue()?;
            let reason = match connection.state() {
                ConnectionState::Connected(_) | ConnectionState::Idle => return None,
                ConnectionState::Connecting => "still connecting".to_owned(),
                ConnectionState::Failed(reason) => sanitize_message(&reason),
            };
            Some(format!("{name}: {reason} (its tools are shown as they were)"))
        };
        servers.iter().filter_map(describe_stale).collect()
    }

    /// Answers a worker's request for the list of servers. The reply contains the servers that the execution may
    /// use, each with its state and the number of its permitted tools.
    pub(super) fn list_servers(&self, run: &RunContext) -> Reply {
        let row = |name: &ServerName| {
            let server = self.code_server(name);
            let count = |catalogue: &Arc<Catalogue>| {
                self.permitted_tools_of(name, catalogue, run.client(), &run.scope).count()
            };
            let known = || server.and_then(CodeServer::known_catalogue).as_ref().map_or(0, count);
            let (state, tools, error) = match server.map(CodeServer::state) {
                Some(None) => ("connected", known(), None),
                Some(Some(state)) => describe_state(state, count, known),
                None => ("connecting", 0, None),
            };
            let mut row = json!({"name": name.as_str(), "state": state, "tools": tools});
            if let Some(error) = error {
                row["error"] = sanitize_message(&error).into();
            }
            row
        };
        Ok(run.scope.servers().iter().map(row).collect::<Value>().to_string().into_bytes())
    }

    /// Answers a worker's request for the permitted tools of a server with the description of each tool. Takes the
    /// answer from the cache of tool lists if possible.
    pub(super) async fn list_tools(&self, run: &RunContext, server: &ServerName) -> Reply {
        let connection = self.visible_server(run, server)?;
        if !run.scope.servers().contains(server)
            && let Some(left_out) = run.scope.out_of_scope_failure()
        {
            return Err(left_out);
        }
        let catalogue = connection.catalogue().await?;
        let (key, policy) = ((server.clone(), run.client().cloned(), run.language), self.policy.current());
        let of_all = !run.scope.is_partial(server);
        let known = of_all.then(|| self.tool_lists.get(&key, &catalogue, &policy)).flatten();
        telemetry::count_tool_list_lookup(known.is_some());
        if let Some(json) = known {
            return Ok(json.to_vec());
        }
        let brief = |tool: &Tool| {
            let asks = policy.may_require_approval(server, &tool.name, run.client());
            tool.module_entry(&connection.describe_options(tool, asks, run.language))
        };
        let permitted = self.permitted_tools_of(server, &catalogue, run.client(), &run.scope);
        let json = permitted.map(brief).collect::<Value>().to_string().into_bytes();
        if of_all {
            self.tool_lists.insert(key, catalogue.clone(), policy, json.as_slice().into());
        }
        Ok(json)
    }

    /// Returns the exact name of the permitted tool to which `tool`, a name in another spelling, refers. Returns
    /// `None` if `tool` is already the exact name of a tool, if it matches no permitted tool, or if the server's
    /// tools are not known.
    pub(super) fn resolve_tool_name(
        &self,
        run: &RunContext,
        server: &ServerName,
        tool: &ToolName,
    ) -> Option<ToolName> {
        let catalogue = self.code_server(server)?.known_catalogue()?;
        if catalogue.tool(tool).is_some() {
            return None;
        }
        let resolved = catalogue.resolve(tool.as_str())?;
        let is_permitted = |one: &Tool| one.name == resolved.name;
        self.permitted_tools_of(server, &catalogue, run.client(), &run.scope)
            .any(is_permitted)
            .then(|| resolved.name.clone())
    }

    /// Answers a worker's request for the description of a server: its state, and what it says about itself.
    pub(super) async fn describe_server(&self, run: &RunContext, server: &ServerName) -> Reply {
        let connection = self.visible_server(run, server)?;
        if !run.scope.servers().contains(server)
            && let Some(left_out) = run.scope.out_of_scope_failure()
        {
            return Err(left_out);
        }
        let catalogue = connection.connected_catalogue().await?;
        let permitted = self.permitted_tools_of(server, &catalogue, run.client(), &run.scope);
        let tools = permitted.count();
        let mut described = json!({"server": server.as_str(), "state": "connected", "tools": tools});
        if let Some(about) = connection.about().filter(|_| tools > 0) {
            if let Some((name, version)) = about.program {
                described["program"] = sanitize_message(&format!("{name} {version}")).into();
            }
            if let Some(instructions) = about.instructions {
                let shown = sanitize_message(&instructions);
                if shown.chars().count() < instructions.chars().count() {
                    described["instructions_cut"] = true.into();
                }
                described["instructions"] = shown.into();
            }
            described["note"] = "program and instructions are the server's own words".into();
        }
        Ok(described.to_string().into_bytes())
    }

    /// Answers a worker's request for the description of a tool.
    pub(super) async fn describe(
        &self,
        run: &RunContext,
        call: CallId,
        server: &ServerName,
        tool: &ToolName,
    ) -> Reply {
        let resolved = self.resolve_tool_name(run, server, tool);
        let tool = resolved.as_ref().unwrap_or(tool);
        let item = CallTarget::from(tool);
        let named = |failure| with_names(failure, server, &item);
        let connection = self.visible_server(run, server).map_err(named)?;
        let lookup = ToolLookup { run, call, server, tool, line: None };
        self.refuse_withheld_tool(&lookup, connection).map_err(named)?;
        let policy = self.policy.current();
        let catalogue = connection.catalogue().await?;
        let definition = catalogue
            .tool(tool)
            .ok_or_else(|| named(self.unknown_tool_failure(run, server, tool, &catalogue)))?;
        self.refuse_unaccepted_definition(&lookup, definition).map_err(named)?;
        let asks = policy.may_require_approval(server, tool, run.client());
        let options = connection.describe_options(definition, asks, run.language);
        Ok(definition.describe(server.as_str(), &options).to_string().into_bytes())
    }

    /// Refuses a request about a tool if the tool is outside of the execution's scope or the policy permits no call
    /// of the tool. A call of the tool would fail with the same error.
    pub(super) fn refuse_withheld_tool(
        &self,
        lookup: &ToolLookup<'_>,
        connection: CodeServer<'_>,
    ) -> Result<(), Failure> {
        let ToolLookup { run, server, tool, .. } = *lookup;
        if let Some(left_out) = self.out_of_scope_failure(run, server, &CallTarget::from(tool)) {
            self.record_denied_lookup(lookup, &left_out.message, None);
            return Err(left_out);
        }
        let request = Call::new(server, tool).with_client(run.client().cloned());
        let policy = self.policy.current();
        if policy.permits(server, tool, run.client()) {
            return Ok(());
        }
        let Decision::Deny(denial) = policy.decide(request) else { return Ok(()) };
        if let Some(misspelled) =
            self.misspelled_tool_failure(run, server, tool, connection.known_catalogue())
        {
            return Err(misspelled);
        }
        self.record_denied_lookup(lookup, &denial.to_string(), denial.location.as_ref());
        Err(denial_failure(&denial))
    }

    /// Refuses a request about a tool whose definition is new or changed and was not accepted by a person.
    pub(super) fn refuse_unaccepted_definition(
        &self,
        lookup: &ToolLookup<'_>,
        definition: &Tool,
    ) -> Result<(), Failure> {
        let Some(reason) = self.unaccepted_tool_reason(lookup.run, lookup.server, definition) else {
            return Ok(());
        };
        self.record_denied_lookup(lookup, &reason, None);
        Err(Failure::new(FailureCode::Denied, reason))
    }

    /// Writes an audit record if an execution requests information about a denied tool. Only the first request of
    /// an execution for each tool is recorded.
    fn record_denied_lookup(&self, lookup: &ToolLookup<'_>, reason: &str, place: Option<&SourceLocation>) {
        let ToolLookup { run, call, server, tool, line } = *lookup;
        if run.usage.is_first_lookup(server, tool) {
            let mut request = ToolRequest::new(server.clone(), tool.into());
            request.line = line;
            self.record_denial(request.subject(run, call), Effect::Deny, reason, place);
        }
    }

    /// Returns the tools of a catalogue that this AI client may see.
    pub(super) fn permitted_tools_of<'a>(
        &'a self,
        server: &'a ServerName,
        catalogue: &'a Catalogue,
        client: Option<&'a ClientName>,
        scope: &'a Scope,
    ) -> impl Iterator<Item = &'a Tool> {
        catalogue.tools.iter().filter(self.visible_tool_filter(server, client, scope))
    }

    /// Returns a filter for the tools of a server. It accepts tools that are in the scope, that the policy
    /// permits for this AI client, and whose definition a person has accepted, if `on_change` requires that.
    pub(super) fn visible_tool_filter<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientName>,
        scope: &'a Scope,
    ) -> impl Fn(&&Tool) -> bool + 'a {
        let policy = self.policy.current();
        let accepts_changes = self.on_change(server, client) == OnChange::Warn;
        move |tool| {
            (accepts_changes || tool.change.is_none())
                && scope.contains(server, &CallTarget::from(&tool.name))
                && policy.permits(server, &tool.name, client)
        }
    }

    /// Returns the failure for a tool that the server does not have. The message suggests a similar permitted tool
    /// or lists permitted tools.
    pub(super) fn unknown_tool_failure(
        &self,
        run: &RunContext,
        server: &ServerName,
        tool: &ToolName,
        catalogue: &Catalogue,
    ) -> Failure {
        let permitted: Vec<&str> = self
            .permitted_tools_of(server, catalogue, run.client(), &run.scope)
            .map(|other| other.name.as_str())
            .collect();
        let suggestion = match lockhouse_policies::most_similar_name(tool.as_str(), permitted.iter().copied())
        {
            Some(name) => format!("did you mean {}?", alternatives(tool.as_str(), name, &permitted)),
            None => format!("permitted are: {}", permitted[..permitted.len().min(30)].join(", ")),
        };
        Failure::new(FailureCode::UnknownTool, format!("server {server} has no tool {tool}; {suggestion}"))
    }

    /// Returns the failure for a tool that the server does not have. Returns `None` if the server has the tool, or
    /// if the server's tools are not known. The audit log has no denial for this failure, because a request for a
    /// tool that does not exist is only a mistake.
    pub(super) fn misspelled_tool_failure(
        &self,
        run: &RunContext,
        server: &ServerName,
        tool: &ToolName,
        known: Option<Arc<Catalogue>>,
    ) -> Option<Failure> {
        let catalogue = known?;
        catalogue.tool(tool).is_none().then(|| self.unknown_tool_failure(run, server, tool, &catalogue))
    }
}

/// Lists the tool that is most similar to an unknown one, and up to two others whose names contain its last word, also in
/// the singular: instead of `get_contacts`, both `get_contact` and `list_contacts` may be meant.
fn alternatives(unknown: &str, most_similar: &str, permitted: &[&str]) -> String {
    let start = unknown.rfind(|c: char| !c.is_ascii_lowercase()).unwrap_or(0);
    let word =
        unknown[start..].trim_matches(|c: char| !c.is_alphabetic()).trim_end_matches('s').to_lowercase();
    let others =
        permitted.iter().filter(|name| **name != most_similar && name.to_lowercase().contains(&word));
    let others: Vec<&str> = others.take(if word.len() < WORD_CHARS_MIN { 0 } else { 2 }).copied().collect();
    [&[most_similar], others.as_slice()].concat().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::alternatives;

    #[test]
    fn tools_with_the_last_word_of_an_unknown_name_are_suggested_too() {
        let permitted = ["get_contact", "get_rate", "list_contacts", "merge_contacts", "tag_contact"];
        for (unknown, expected) in [
            ("get_contacts", "get_contact or list_contacts or merge_contacts"),
            ("getContacts", "get_contact or list_contacts or merge_contacts"),
            ("get_contct", "get_contact"),
            ("get_co", "get_contact"),
            ("get", "get_contact"),
        ] {
            assert_eq!(alternatives(unknown, "get_contact", &permitted), expected, "{unknown}");
        }
    }
}
