//! The policy limits that apply to one permitted call: those of its tool, its server, its client, the role of the
//! person who runs it, and of all calls together.

use crate::call::ClientName;
use crate::call_target::CallTarget;
use crate::decision::permitted::PermittedCall;
use crate::limits::Limits;
use crate::policy::Policy;
use crate::printable::printable;
use crate::source::SourceLocation;
use crate::table::{LimitsEntry, ServerTable};

/// Limits from a policy, and the scope of the calls that share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedLimits {
    /// The scope, such as `server github`, `tool github/create_*`, `client cursor` or `role support`; shown to users. Calls with the
    /// same scope share its limits. No two limits of one policy have the same scope.
    pub scope: String,
    /// The name of the person whose calls share the limits, if each member of a role has its own. The scope does not name the person, because
    /// errors and records have its text.
    pub member: Option<String>,
    /// The limits that the calls of this scope share.
    pub limits: Limits,
    /// The location of the first of these limits in the policy document.
    pub location: SourceLocation,
}

impl Policy {
    /// Returns the limits that apply to the call, from the narrowest scope to the widest. Among limits of equally
    /// wide scopes, those of the policy's own document come before those of the documents that restrict it.
    #[must_use]
    pub fn limits(&self, call: &PermittedCall, client: Option<&ClientName>) -> Vec<ScopedLimits> {
        let (server, item) = (call.server(), call.item());
        let mut all = Vec::new();
        for (number, layer) in self.layers().enumerate() {
            let scoped = |scope: String, LimitsEntry { limits, line }: LimitsEntry| {
                let of = if number == 0 { String::new() } else { format!(" ({})", printable(layer.path())) };
                ScopedLimits { scope: scope + &of, member: None, limits, location: layer.location(line) }
            };
            let mut add = |width: usize, limits: ScopedLimits| all.push((width, limits));
            let mut add_table = |table: &ServerTable, whose: &str| {
                if let CallTarget::Tool(tool) = item {
                    for (pattern, bounds) in table.tool_limits.for_tool(tool.as_str()) {
                        add(0, scoped(format!("tool {server}/{pattern}{whose}"), *bounds));
                    }
                }
                if let Some(bounds) = table.limits {
                    add(1, scoped(format!("server {server}{whose}"), bounds));
                }
            };
            let role = layer.running_role(client);
            if let Some((role, table)) =
                role.and_then(|role| Some((role, role.servers.as_ref()?.get(server)?)))
            {
                add_table(table, &format!(" for role {}", role.name));
            }
            let (person, client) = (client, layer.clients.table_for(client));
            if let Some((client, table)) =
                client.and_then(|client| Some((client, client.servers.as_ref()?.get(server)?)))
            {
                add_table(table, &format!(" for client {}", client.name()));
            }
            if let Some(table) = layer.servers.get(server) {
                add_table(table, "");
            }
            if let Some((client, bounds)) = client.and_then(|client| Some((client, client.limits?))) {
                add(2, scoped(format!("client {}", client.name()), bounds));
            }
            if let (Some(role), Some(person)) = (role, person) {
                if let Some(bounds) = role.together {
                    add(2, scoped(format!("role {}", role.name), bounds));
                }
                if let Some(bounds) = role.each {
                    let limits = scoped(format!("each member of role {}", role.name), bounds);
                    add(2, ScopedLimits { member: Some(person.as_str().to_owned()), ..limits });
                }
            }
            if let Some(bounds) = layer.limits {
                add(3, scoped("all calls".to_owned(), bounds));
            }
        }
        all.sort_by_key(|(width, _)| *width);
        all.into_iter().map(|(_, limits)| limits).collect()
    }
}
