//! The smallest policy that would have covered what was used.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::document::{PATTERNS_MAX, TEXT_BYTES_MAX};
use crate::item::{Item, Listing};
use crate::printable::printable;

/// What is kept free at the end of the text for closing it and saying what was left out.
const TAIL_BYTES: usize = 1024;

/// Clients that a comment names.
const CLIENTS_NAMED_MAX: usize = 5;

const HEADER: &str = "\
# The least that covers what was used: exactly these tools, resources and prompts, with any arguments.
# Behind each stands how often it was used, and by whom, as they call themselves.

version = 1
";

/// What a call was of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The upstream server.
    pub server: ServerName,
    /// What was asked of it.
    pub item: Item,
    /// The AI client, where there was one.
    pub client: Option<ClientName>,
}

#[derive(Default)]
struct Used<'u> {
    times: u64,
    clients: BTreeSet<&'u ClientName>,
}

/// A list's key, and its entries.
type Lists<'u> = BTreeMap<&'static str, BTreeMap<&'u str, Used<'u>>>;

/// A policy document that permits exactly the tools, resources and prompts that were used, each so often, with any
/// arguments. What does not fit into the bounds of a policy is left out, and the text says how much that is.
#[must_use]
pub fn suggest(uses: &BTreeMap<Use, u64>) -> String {
    let mut servers: BTreeMap<&ServerName, Lists<'_>> = BTreeMap::new();
    for (one, times) in uses {
        let list = servers.entry(&one.server).or_default().entry(one.item.list()).or_default();
        // To be listed, a server needs no more than the list.
        if let Item::List(Listing::Resources | Listing::Prompts) = one.item {
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
                let line = format!("    {},  # {}\n", toml::Value::from(name), used.told());
                // A name that ends in a star would be read as a beginning, and permit more.
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
        text += &format!("\n# {left_out} more that were used have no place in a policy.\n");
    }
    text
}

impl Used<'_> {
    fn told(&self) -> String {
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
