//! The list of servers and tools in the description of `run_code`, for one AI client.

use std::sync::Arc;

use lockhouse_catalog::{
    Catalogue, OverviewState, ServerOverview, Tool, all_signatures, estimated_tokens, server_names,
};
use lockhouse_policies::ClientName;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ConnectionState;

use super::Gate;
use super::code_server::CodeServer;
use super::scope::Scope;

/// Assumed minimum size of a tool signature, in estimated tokens. If signatures of this size for all tools would
/// already exceed the token limit, no signature is formatted.
const SIGNATURE_TOKENS_MIN: usize = 4;

/// A server that an AI client may use, with its tools if they are known.
struct Listed<'a> {
    server: &'a ServerName,
    connection: CodeServer<'a>,
    catalogue: Option<Arc<Catalogue>>,
    /// Number of the server's tools that the AI client may use.
    tools: usize,
}

impl Gate {
    /// Returns text for the tool description of `run_code`. If the signatures of all permitted tools are known and
    /// fit into `tokens_max` estimated tokens, the text contains these signatures. Otherwise the text contains the
    /// servers that the AI client may use, each with its number of permitted tools. Servers without permitted tools
    /// are omitted. The text is empty if no server remains.
    ///
    /// Does not wait for servers to connect: the tools of a server are known from its current connection or from an
    /// earlier connection.
    pub async fn catalogue_description(
        &self,
        scope: &Scope,
        client: Option<&ClientName>,
        tokens_max: usize,
    ) -> String {
        let listed = self.listed_servers(scope, client).await;
        let overviews: Vec<ServerOverview<'_>> = listed
            .iter()
            .filter_map(|listed| {
                let state = match (&listed.catalogue, listed.connection.state()) {
                    (Some(_), _) => OverviewState::Known(listed.tools),
                    (None, Some(ConnectionState::Failed(_))) => OverviewState::Unavailable,
                    (None, _) => OverviewState::Connecting,
                };
                // A server whose tools are all withheld is not shown.
                let is_shown = !matches!(state, OverviewState::Known(0));
                is_shown.then(|| ServerOverview { name: listed.server.as_str(), state })
            })
            .collect();
        let is_complete = overviews.iter().all(|server| matches!(server.state, OverviewState::Known(_)));
        let tools: usize = listed.iter().map(|listed| listed.tools).sum();
        let signatures = (is_complete && tools * SIGNATURE_TOKENS_MIN <= tokens_max)
            .then(|| self.permitted_signatures(&listed, scope, client, tokens_max))
            .flatten();
        match signatures {
            Some(signatures) => format!("Tools (? = optional):\n{signatures}"),
            None if overviews.is_empty() => String::new(),
            None => format!("Servers (tools): {}", server_names(&overviews)),
        }
    }

    async fn listed_servers<'a>(
        &'a self,
        scope: &'a Scope,
        client: Option<&'a ClientName>,
    ) -> Vec<Listed<'a>> {
        let mut listed = Vec::new();
        for server in scope.servers() {
            let Some(connection) = self.code_server(server) else { continue };
            let catalogue = connection.known_catalogue();
            let tools = catalogue
                .as_ref()
                .map_or(0, |catalogue| self.permitted_tools_of(server, catalogue, client, scope).count());
            listed.push(Listed { server, connection, catalogue, tools });
            // The policy is asked about each tool; other executions must not wait for all of them.
            tokio::task::yield_now().await;
        }
        listed.sort_by(|one, other| one.server.cmp(other.server));
        listed
    }

    fn permitted_signatures(
        &self,
        listed: &[Listed<'_>],
        scope: &Scope,
        client: Option<&ClientName>,
        tokens_max: usize,
    ) -> Option<String> {
        let mut tokens = 0;
        let mut servers = Vec::new();
        for Listed { server, connection, catalogue, .. } in listed {
            let Some(catalogue) = catalogue else { continue };
            let mut signatures = Vec::new();
            for tool in self.permitted_tools_of(server, catalogue, client, scope) {
                let signature = short_signature(*connection, tool);
                tokens += estimated_tokens(&signature);
                if tokens > tokens_max {
                    return None;
                }
                signatures.push(signature);
            }
            if !signatures.is_empty() {
                servers.push((server.to_string(), signatures));
            }
        }
        all_signatures(servers.into_iter(), tokens_max)
    }
}

fn short_signature(connection: CodeServer<'_>, tool: &Tool) -> String {
    let observed = connection.observed_schema(tool).filter(|_| !tool.declares_values);
    tool.short_signature(observed.as_ref())
}
