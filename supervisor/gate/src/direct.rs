//! AI clients that have servers directly: the same way to a server as code's, and what they may know of it.

use lockhouse_base::principal::Principal;
use lockhouse_catalog::Tool;
use lockhouse_policies::{ClientName, Item, Listing};
use lockhouse_protocol::{CallId, Reply, ServerName};
use lockhouse_upstream::Connection;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::arguments::Given;
use super::asked::Asked;
use super::scope::Scope;
use super::{Gate, Requester};

/// An AI client's own call is the first and last of its execution.
const CALL: CallId = CallId(1);

/// What a server lists and the policy permits, each entry as the server wrote it.
#[derive(Default, Deserialize)]
pub struct Entries {
    pub items: Vec<Box<RawValue>>,
    #[serde(default)]
    pub templates: Vec<Box<RawValue>>,
}

impl Gate {
    /// The servers that AI clients have directly, in the order of their names.
    pub fn direct(&self) -> impl Iterator<Item = (&ServerName, &Connection, &str)> {
        self.upstreams.iter().filter_map(|(name, connection)| Some((name, connection, connection.prefix()?)))
    }

    /// The servers that code imports.
    pub fn servers(&self) -> Vec<ServerName> {
        let imported = self.upstreams.iter().filter(|(_, connection)| connection.exposure.to_code);
        imported.map(|(name, _)| name.clone()).collect()
    }

    /// Of the servers that AI clients have directly, what one may know of.
    pub fn direct_scope(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.direct().map(|(name, ..)| name.clone()).collect());
        match principal.only() {
            Some(only) => all.granted(only),
            None => all,
        }
    }

    /// Whether a client may know of a tool.
    pub fn shows(
        &self,
        server: &ServerName,
        tool: &Tool,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> bool {
        self.usable(server, client, scope)(&tool)
    }

    /// The way of every call, for one that an AI client makes itself.
    pub async fn directly(&self, from: &Requester, asked: &Asked, arguments: Vec<u8>) -> Reply {
        self.call(from, CALL, asked, Given { arguments, timeout: None }).await.0
    }

    /// A list, asked for on the same way.
    pub async fn listed_directly(
        &self,
        from: &Requester,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Entries> {
        let asked = Asked::new(server.clone(), Item::List(listing));
        let reply = self.call(from, CALL, &asked, Given::default()).await.0;
        serde_json::from_slice(&reply.ok()?).ok()
    }

    /// An AI client's own call that ended before its answer came.
    pub fn let_go(&self, from: &Requester, asked: &Asked, took: std::time::Duration) {
        drop(self.abandoned(from, CALL, asked, took));
    }
}
