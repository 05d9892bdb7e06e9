//! Generates a minimal policy, which allows exactly what recorded calls used.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::call_target::{CallTarget, Listing};
use crate::document::{PATTERNS_MAX, TEXT_BYTES_MAX};
use crate::printable::printable;

/// The number of bytes that are reserved at the end of the generated policy, for closing brackets and for the comment
/// that states how many targets were left out.
const TAIL_BYTES: usize = 1024;

/// The maximum number of AI clients that are named in the comment on one entry of a generated policy.
const CLIENTS_NAMED_MAX: usize = 5;

const HEADER: &str = "\
# A minimal policy generated from recorded calls. It allows exactly these tools, resources and prompts, with any arguments.
# The comments say how often each was used, and by which AI clients.

version = 1
";

/// The server, target and AI client of recorded calls. Calls with the same key are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The upstream server that was called.
    pub server: ServerName,
    /// The tool, resource, prompt or list that the calls requested.
    pub item: CallTarget,
    /// The AI client that made the calls; `None` if it has no name.
    pub client: Option<ClientName>,
}

#[derive(Default)]
struct UsageCount<'u> {
    times: u64,
    clients: BTreeSet<&'u ClientName>,
}

/// The generated lists of one server's policy table, by key such as `allow`. Each list maps a tool, resource
/// or prompt to its use in recorded calls.
type ServerLists<'u> = BTreeMap<&'static str, BTreeMap<&'u str, UsageCount<'u>>>;

/// Generates a policy that allows exactly the tools, resources, prompts and lists of the recorded calls, with any
/// arguments. `uses` maps each server, target and AI client to its number of calls. Targets that exceed the size limits
/// of a policy, and targets with a `*` in their names, are left out; a comment states their number.
#[must_use]
pub fn suggest_policy(uses: &BTreeMap<CallKey, u64>) -> String {
    let mut servers: BTreeMap<&ServerName, ServerLists<'_>> = BTreeMap::new();
    for (one, times) in uses {
        let list = servers.entry(&one.server).or_default().entry(one.item.list_key()).or_default();
        // Listing requires only that the list exists.
        if let CallTarget::List(Listing::Resources | Listing::Prompts) = one.item {
            continue;
        }
        let used = list.entry(one.item.as_str()).or_default();
        used.times = used.times.saturating_add(*times);
        used.clients.extend(&one.client);
    }
    let mut text = HEADER.to_owned();
    let (mut patterns, mut left_out) = (0, 0);
    for (server, lists) in servers {
        let opening = format!("\n[servers.{server}]\n");
        if text.len() + opening.len() + TAIL_BYTES > TEXT_BYTES_MAX {
            left_out += lists.values().map(BTreeMap::len).sum::<usize>();
            continue;
        }
        text += &opening;
        for (key, entries) in lists {
            text += &format!("{key} = [\n");
            for (name, used) in entries {
                let line = format!("    {},  # {}\n", toml::Value::from(name), used.comment());
                // A name with `*` would be read as a pattern, and allow more.
                let fits = patterns < PATTERNS_MAX && text.len() + line.len() + TAIL_BYTES < TEXT_BYTES_MAX;
                if name.contains('*') || !fits {
                    left_out += 1;
                    continue;
                }
                patterns += 1;
                text += &line;
            }
            text += "]\n";
        }
    }
    if left_out > 0 {
        text += &format!("\n# {left_out} more targets of recorded calls do not fit in a policy.\n");
    }
    text
}

impl UsageCount<'_> {
    fn comment(&self) -> String {
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        let named = self.clients.iter().take(CLIENTS_NAMED_MAX).map(|client| client.as_str());
        let named: Vec<_> = named.map(printable).collect();
        match (named.len(), self.clients.len().saturating_sub(CLIENTS_NAMED_MAX)) {
            (0, _) => times,
            (_, 0) => format!("{times}, by {}", named.join(", ")),
            (_, more) => format!("{times}, by {} and {more} more", named.join(", ")),
        }
    }
}
