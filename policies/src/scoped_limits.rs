//! What bounds one permitted call: the limits of its tool, its server, its client and of everything together.

use crate::call::ClientName;
use crate::decision::permitted::PermittedCall;
use crate::item::Item;
use crate::limits::Limits;
use crate::policy::Policy;
use crate::printable::printable;
use crate::source::Place;
use crate::table::{Bounds, ServerTable};

/// Limits, and what they are counted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedLimits {
    /// Such as `server github`, `tool github/create_*` or `client cursor`; it is shown to people. Calls with the same scope
    /// share its limits: no two limits of one policy have the same.
    pub scope: String,
    /// The limits.
    pub limits: Limits,
    /// Where the first of them stands.
    pub place: Place,
}

impl Policy {
    /// What bounds this call, from the narrowest scope to the widest; of two alike the first layer's comes first.
    #[must_use]
    pub fn limits(&self, call: &PermittedCall, client: Option<&ClientName>) -> Vec<ScopedLimits> {
        let (server, item) = (call.server(), call.item());
        let mut all = Vec::new();
        for (number, layer) in self.layers().enumerate() {
            let mut add = |width: usize, scope: String, Bounds { limits, line }: Bounds| {
                let of = if number == 0 { String::new() } else { format!(" ({})", printable(layer.path())) };
                all.push((width, ScopedLimits { scope: scope + &of, limits, place: layer.place(line) }));
            };
            let mut add_table = |table: &ServerTable, whose: &str| {
                if let Item::Tool(tool) = item {
                    for (pattern, bounds) in table.tool_limits.of(tool.as_str()) {
                        add(0, format!("tool {server}/{pattern}{whose}"), *bounds);
                    }
                }
                if let Some(bounds) = table.limits {
                    add(1, format!("server {server}{whose}"), bounds);
                }
            };
            let client = layer.clients.table_of(client);
            if let Some((client, table)) =
                client.and_then(|client| Some((client, client.servers.as_ref()?.get(server)?)))
            {
                add_table(table, &format!(" for client {}", client.name()));
            }
            if let Some(table) = layer.servers.get(server) {
                add_table(table, "");
            }
            if let Some((client, bounds)) = client.and_then(|client| Some((client, client.limits?))) {
                add(2, format!("client {}", client.name()), bounds);
            }
            if let Some(bounds) = layer.limits {
                add(3, "all calls".to_owned(), bounds);
            }
        }
        all.sort_by_key(|(width, _)| *width);
        all.into_iter().map(|(_, limits)| limits).collect()
    }
}
