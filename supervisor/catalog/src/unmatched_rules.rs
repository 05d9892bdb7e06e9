//! Finds rules of the policy that name tools or parameters which an upstream server does not have.

use lockhouse_policies::{Diagnostics, Policy, SchemaParameters};
use lockhouse_protocol::ServerName;
use serde_json::Value;

use super::{Catalogue, Tool};

/// Returns the parameters that a tool's input schema declares.
pub fn tool_members(tool: &Tool) -> SchemaParameters {
    let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
    SchemaParameters::from_schema(definition.get("inputSchema").unwrap_or(&Value::Null))
}

/// Returns a warning for each line of the policy that has no effect because the upstream server does not have the tool
/// or parameter that the line names.
pub fn unmatched_rules(policy: &Policy, server: &ServerName, catalogue: &Catalogue) -> Diagnostics {
    let names: Vec<&str> = catalogue.tools.iter().map(|tool| tool.name.as_str()).collect();
    let of_tool = |name: &str| {
        let tool = catalogue.tools.iter().find(|tool| tool.name.as_str() == name);
        tool.map_or(SchemaParameters::Any, tool_members)
    };
    lockhouse_policies::unmatched_names(policy, server, &names, &of_tool)
}
