//! Direct calls: AI clients call tools of upstream servers directly, without code. The gate makes the same checks as
//! for calls from code.

use lockhouse_base::principal::Principal;
use lockhouse_catalog::Tool;
use lockhouse_policies::{Call, CallTarget, ClientName, Decision, Listing};
use lockhouse_protocol::{CallId, Reply, ServerName};
use lockhouse_upstream::Connection;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::argument_names::RawArguments;
use super::scope::Scope;
use super::tool_request::ToolRequest;
use super::{Gate, RunContext};

/// The call number of a direct call, which is the only call of its execution.
const CALL: CallId = CallId(1);

/// The permitted resources or prompts in a list of an upstream server, each as raw JSON.
#[derive(Default, Deserialize)]
pub struct Entries {
    pub items: Vec<Box<RawValue>>,
    /// The permitted resource templates. Always empty in a list of prompts.
    #[serde(default)]
    pub templates: Vec<Box<RawValue>>,
}

impl Gate {
    /// Returns the upstream servers that AI clients can call directly, sorted by name, each with the prefix of its tool
    /// names.
    pub fn direct_servers(&self) -> impl Iterator<Item = (&ServerName, &Connection, &str)> {
        self.upstreams
            .iter()
            .filter_map(|(name, connection)| Some((name, &**connection, connection.prefix()?)))
    }

    /// Returns the servers that programs can import as modules, sorted by name: upstream servers, and the built-in server
    /// `files` if it is configured.
    pub fn code_servers(&self) -> Vec<ServerName> {
        let imported = self.upstreams.iter().filter(|(_, connection)| connection.exposure.to_code);
        let imported = imported.map(|(name, _)| name).filter(|name| !self.is_files_server(name));
        let settings = self.files.settings();
        let built_in = settings.is_on().then_some(&settings.name);
        let mut servers: Vec<ServerName> = imported.chain(built_in).cloned().collect();
        servers.sort_unstable();
        servers
    }

    /// Returns the upstream servers and tools that this AI client may know of and call directly. The policy is not
    /// applied.
    pub fn direct_scope(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.direct_servers().map(|(name, ..)| name.clone()).collect());
        match principal.only() {
            Some(only) => all.restricted_to_grant(only),
            None => all,
        }
    }

    /// Returns the scope of the upstream servers that this AI client may call directly and that code cannot
    /// import.
    pub fn direct_only_scope(&self, principal: &Principal) -> Scope {
        let only: Vec<ServerName> = self
            .direct_servers()
            .filter(|(_, connection, _)| !connection.exposure.to_code)
            .map(|(name, ..)| name.clone())
            .collect();
        self.direct_scope(principal).retain_configured(&only)
    }

    /// Whether this AI client can see a tool: the client's scope and the policy permit it, and its definition is
    /// accepted if `on_change` requires that.
    pub fn shows_tool(
        &self,
        server: &ServerName,
        tool: &Tool,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> bool {
        self.visible_tool_filter(server, client, scope)(&tool)
    }

    /// Returns the reason for which the policy denies every call of a tool. Returns `None` if the policy permits
    /// some calls of the tool, or if the tool is outside of the AI client's scope.
    pub fn denial_of_tool(
        &self,
        server: &ServerName,
        tool: &Tool,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> Option<String> {
        let policy = self.policy.current();
        let is_denied = scope.contains(server, &CallTarget::from(&tool.name))
            && !policy.permits(server, &tool.name, client);
        let call = Call::new(server, &tool.name).with_client(client.cloned());
        match is_denied.then(|| policy.decide(call))? {
            Decision::Deny(denial) => Some(denial.to_string()),
            _ => None,
        }
    }

    /// Makes a direct call of an AI client, with the same checks as for a call from code.
    pub async fn call_directly(&self, run: &RunContext, request: &ToolRequest, arguments: Vec<u8>) -> Reply {
        self.call(run, CALL, request, RawArguments { arguments, ..RawArguments::default() }).await.0
    }

    /// Lists the resources or prompts of an upstream server that the policy permits for an AI client. Returns `None`
    /// if the request for the list fails, for example because the server has no resources or prompts.
    pub async fn list_directly(
        &self,
        run: &RunContext,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Entries> {
        let request = ToolRequest::new(server.clone(), CallTarget::List(listing));
        let reply = self.call(run, CALL, &request, RawArguments::default()).await.0;
        serde_json::from_slice(&reply.ok()?).ok()
    }

    /// Writes the audit record of a direct call whose request ended before the reply arrived. `took` is the time
    /// since the call began.
    pub fn abandon_direct_call(&self, run: &RunContext, request: &ToolRequest, took: std::time::Duration) {
        drop(self.record_abandoned(run, CALL, request, took));
    }
}
