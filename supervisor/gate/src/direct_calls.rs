//! Direct access: tools of upstream servers that AI clients call without code. The same checks apply as to calls from
//! code.

use lockhouse_base::principal::Principal;
use lockhouse_catalog::Tool;
use lockhouse_policies::{CallTarget, ClientName, Listing};
use lockhouse_protocol::{CallId, Reply, ServerName};
use lockhouse_upstream::Connection;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::argument_names::RawArguments;
use super::scope::Scope;
use super::tool_request::ToolRequest;
use super::{Gate, Requester};

/// A direct call is the only call of its execution.
const CALL: CallId = CallId(1);

/// The permitted entries of a server's list, each as raw JSON.
#[derive(Default, Deserialize)]
pub struct Entries {
    pub items: Vec<Box<RawValue>>,
    #[serde(default)]
    pub templates: Vec<Box<RawValue>>,
}

impl Gate {
    /// Returns the servers that AI clients access directly, sorted by name, with their tool prefixes.
    pub fn direct_servers(&self) -> impl Iterator<Item = (&ServerName, &Connection, &str)> {
        self.upstreams.iter().filter_map(|(name, connection)| Some((name, connection, connection.prefix()?)))
    }

    /// Returns the servers that code can import.
    pub fn code_servers(&self) -> Vec<ServerName> {
        let imported = self.upstreams.iter().filter(|(_, connection)| connection.exposure.to_code);
        imported.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the directly accessible servers that this AI client may know of.
    pub fn direct_scope(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.direct_servers().map(|(name, ..)| name.clone()).collect());
        match principal.only() {
            Some(only) => all.restricted_to_grant(only),
            None => all,
        }
    }

    /// Whether a tool is visible to this AI client.
    pub fn shows_tool(
        &self,
        server: &ServerName,
        tool: &Tool,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> bool {
        self.visible_tool_filter(server, client, scope)(&tool)
    }

    /// Makes a direct call of an AI client, with all checks.
    pub async fn call_directly(
        &self,
        requester: &Requester,
        request: &ToolRequest,
        arguments: Vec<u8>,
    ) -> Reply {
        self.call(requester, CALL, request, RawArguments { arguments, ..RawArguments::default() }).await.0
    }

    /// Lists resources or prompts for an AI client, with all checks.
    pub async fn list_directly(
        &self,
        requester: &Requester,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Entries> {
        let request = ToolRequest::new(server.clone(), CallTarget::List(listing));
        let reply = self.call(requester, CALL, &request, RawArguments::default()).await.0;
        serde_json::from_slice(&reply.ok()?).ok()
    }

    /// Records a direct call that ended before its reply arrived.
    pub fn abandon_direct_call(
        &self,
        requester: &Requester,
        request: &ToolRequest,
        took: std::time::Duration,
    ) {
        drop(self.record_abandoned(requester, CALL, request, took));
    }
}
