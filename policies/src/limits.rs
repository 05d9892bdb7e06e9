//! How much of what a policy permits may be used.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::item::Item;
use crate::layer::Layer;
use crate::printable::printable;
use crate::source::Place;
use crate::table::{Bounds, ServerTable};

/// So many calls in a time, some of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls in `per`.
    pub calls: NonZeroU32,
    /// The time.
    pub per: Duration,
    /// Calls that may be made at once after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Such as `60/min`: per `s`, `min`, `h` or `d`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (calls, unit) = text.split_once('/')?;
        let calls: NonZeroU32 = calls.trim().parse().ok()?;
        Some(Self { calls, per: Duration::from_secs(seconds(unit.trim())?), burst: calls })
    }
}

pub(crate) fn seconds(unit: &str) -> Option<u64> {
    match unit {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    }
}

/// What bounds the use of one thing. `None` is unbounded by the policy; the configuration's own limits hold besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Over all executions.
    pub rate: Option<Rate>,
    /// Calls of one execution.
    pub calls_per_execution: Option<u32>,
    /// Bytes of arguments of one execution's calls together.
    pub argument_bytes_per_execution: Option<u64>,
    /// Bytes of results of one execution's calls together.
    pub result_bytes_per_execution: Option<u64>,
    /// Of one call.
    pub timeout: Option<Duration>,
}

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

/// From the narrowest to the widest; of two alike the first layer's first.
pub(crate) fn of<'p>(
    layers: impl Iterator<Item = &'p Layer>,
    server: &ServerName,
    item: &Item,
    client: Option<&ClientName>,
) -> Vec<ScopedLimits> {
    let mut all = Vec::new();
    for (number, layer) in layers.enumerate() {
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

/// As it is written in a policy.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.per.as_secs();
        let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
        let (unit, length) =
            units.into_iter().find(|(_, length)| seconds.is_multiple_of(*length)).unwrap_or(("s", 1));
        match seconds / length {
            1 => write!(f, "{}/{unit}", self.calls),
            count => write!(f, "{} in {count} {unit}", self.calls),
        }?;
        if self.burst == self.calls { Ok(()) } else { write!(f, ", {} at once", self.burst) }
    }
}
