//! What a policy says of tools and parameters that a server does not have.

use lockhouse_policies::{Diagnostics, Members, Policy};
use lockhouse_protocol::ServerName;
use serde_json::Value;

use super::{Catalogue, Tool};

/// Which arguments a tool declares.
pub fn members(tool: &Tool) -> Members {
    let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
    Members::of_schema(definition.get("inputSchema").unwrap_or(&Value::Null))
}

/// A warning for each line of the policy that has no effect, since the server has no such tool or parameter.
pub fn unmatched(policy: &Policy, server: &ServerName, catalogue: &Catalogue) -> Diagnostics {
    let names: Vec<&str> = catalogue.tools.iter().map(|tool| tool.name.as_str()).collect();
    let of_tool = |name: &str| {
        let tool = catalogue.tools.iter().find(|tool| tool.name.as_str() == name);
        tool.map_or(Members::Any, members)
    };
    lockhouse_policies::unmatched(policy, server, &names, &of_tool)
}
