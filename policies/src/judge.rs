//! The one judge: what speaks of a call, in the order of its precedence, and which of it applies.
//!
//! [`Policy::decide`](crate::Policy::decide) takes the first that applies, [`explain`](crate::explain) shows all of them.

use lockhouse_protocol::ServerName;

use crate::call::Call;
use crate::condition::{Condition, Judged, World};
use crate::effect::Effect;
use crate::item::Item;
use crate::layer::{Layer, View};
use crate::list::{Entry, List};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::source::Place;
use crate::table::{Pin, ServerTable};

/// The server that stands for saved skills. No other one can have that name.
pub const SKILLS: &str = "skills";

/// Something that speaks of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ground<'p> {
    InDeny(&'p Entry),
    Pin(&'p Pin),
    Rule(&'p Rule),
    Ask(&'p Entry),
    /// The list that permits: `allow`, `resources` or `prompts`.
    Allow(&'p Entry),
    /// What is listed is shown entry by entry, as each of them is permitted.
    Listing(&'p List),
    NotInAllow(&'p ServerTable, &'p List),
    NoAllowList(&'p ServerTable),
    /// Nothing is said of saving skills, which is left to a person then.
    Skills,
    NoServerTable,
    NoPolicy,
}

/// Why something that speaks of a call does not apply to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unmet<'p> {
    Condition(&'p Condition, Judged),
    /// The definition is the one that is pinned.
    Pinned,
}

impl<'p> View<'p> {
    /// All that speaks of calls of this, in the order of precedence. The last one applies to every call.
    pub(crate) fn grounds(self, server: &ServerName, item: &Item) -> impl Iterator<Item = Ground<'p>> {
        let table = self.servers.get(server);
        let tool = match item {
            Item::Tool(tool) => Some(tool),
            _ => None,
        };
        // Nothing but the list speaks of a listing.
        let denied = table.filter(|_| !matches!(item, Item::List(_))).and_then(|table| table.deny.as_ref());
        let denied = denied.into_iter().flat_map(|deny| deny.denies(item)).map(Ground::InDeny);
        let of_tool = table.zip(tool);
        let pinned = of_tool.and_then(|(table, tool)| table.pins.get(tool)).map(Ground::Pin);
        let rules =
            of_tool.into_iter().flat_map(|(table, tool)| table.rules.of(tool.as_str())).map(Ground::Rule);
        let listed = table.into_iter().flat_map(|table| listed(table, item));
        let last = match (table, table.and_then(|table| table.permitting(item))) {
            (Some(_), Some(list)) if matches!(item, Item::List(_)) => Ground::Listing(list),
            (Some(table), Some(list)) => Ground::NotInAllow(table, list),
            (Some(table), None) => Ground::NoAllowList(table),
            // A client's own tables list what is meant for it; a document that says nothing of skills leaves them to a person.
            (None, _) if self.client.is_none() && is_of_skills(server, item) => Ground::Skills,
            (None, _) if self.layer.source.is_none() => Ground::NoPolicy,
            (None, _) => Ground::NoServerTable,
        };
        denied.chain(pinned).chain(rules).chain(listed).chain([last])
    }

    /// What decides about a call here.
    pub(crate) fn decisive(self, call: &Call, world: World<'_>) -> Ground<'p> {
        let mut grounds = self.grounds(&call.server, &call.item);
        grounds.find(|ground| ground.judge(call, world).is_ok()).unwrap_or(Ground::NoServerTable)
    }

    /// Whether some call of this could be permitted here, with arguments and a definition that fit.
    pub(crate) fn could_permit(self, server: &ServerName, item: &Item) -> bool {
        for ground in self.grounds(server, item) {
            match ground {
                Ground::Pin(_) => {}
                Ground::Rule(rule) if rule.effect == Effect::Deny && !rule.conditions.is_empty() => {}
                ground => return ground.effect() != Effect::Deny,
            }
        }
        false
    }

    /// The same of some resource that begins so.
    pub(crate) fn could_permit_some_of(self, server: &ServerName, beginning: &str) -> bool {
        let Some(table) = self.servers.get(server) else { return false };
        let any = |list: &Option<List>, is_so: fn(&Pattern, &str) -> bool| {
            list.as_ref()
                .is_some_and(|list| list.entries.iter().any(|entry| is_so(&entry.pattern, beginning)))
        };
        !any(&table.deny, Pattern::has_all_of) && any(&table.resources, Pattern::has_any_of)
    }
}

/// Of `allow` and `ask` the more specific pattern counts, and of two alike the one that asks.
fn listed<'p>(table: &'p ServerTable, item: &Item) -> Vec<Ground<'p>> {
    let rank = |entry: &Entry| (entry.pattern.is_starred(), std::cmp::Reverse(entry.pattern.stem().len()));
    if matches!(item, Item::List(_)) {
        return Vec::new();
    }
    let asked = table.ask.as_ref().filter(|_| matches!(item, Item::Tool(_)));
    let asked =
        asked.into_iter().flat_map(|ask| ask.permits(item)).map(|entry| (rank(entry), Ground::Ask(entry)));
    let allow = table.permitting(item);
    let allowed = allow
        .into_iter()
        .flat_map(|list| list.permits(item))
        .map(|entry| (rank(entry), Ground::Allow(entry)));
    let mut all: Vec<_> = asked.chain(allowed).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, ground)| ground).collect()
}

impl<'p> Ground<'p> {
    /// Whether it applies to the call.
    pub(crate) fn judge(self, call: &Call, world: World<'_>) -> Result<(), Unmet<'p>> {
        match self {
            Self::Pin(pin) if pin.fits(call.definition.as_deref()) => Err(Unmet::Pinned),
            Self::Rule(rule) => rule
                .judge(&call.arguments, world)
                .map_err(|(condition, judged)| Unmet::Condition(condition, judged)),
            _ => Ok(()),
        }
    }

    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::Rule(rule) => rule.effect,
            Self::Ask(_) | Self::Skills => Effect::Ask,
            Self::Allow(_) | Self::Listing(_) => Effect::Allow,
            Self::InDeny(_)
            | Self::Pin(_)
            | Self::NotInAllow(..)
            | Self::NoAllowList(_)
            | Self::NoServerTable
            | Self::NoPolicy => Effect::Deny,
        }
    }

    /// Whether it is what remains when nothing speaks of the call.
    pub(crate) fn is_last(self) -> bool {
        matches!(
            self,
            Self::NotInAllow(..) | Self::NoAllowList(_) | Self::Skills | Self::NoServerTable | Self::NoPolicy
        )
    }

    /// The line that it stands on.
    pub(crate) fn line(self) -> Option<usize> {
        match self {
            Self::InDeny(entry) | Self::Ask(entry) | Self::Allow(entry) => Some(entry.line),
            Self::Pin(pin) => Some(pin.line),
            Self::Rule(rule) => Some(rule.line),
            Self::Listing(list) | Self::NotInAllow(_, list) => Some(list.line),
            Self::NoAllowList(table) => Some(table.line),
            Self::Skills | Self::NoServerTable | Self::NoPolicy => None,
        }
    }

    /// Where it stands; what Lockhouse says by itself stands in no file.
    pub(crate) fn place(self, layer: &Layer) -> Option<Place> {
        match self {
            Self::Skills => Some(Place { path: BUILT_IN.to_owned(), line: 0 }),
            ground => ground.line().map(|line| layer.place(line)),
        }
    }
}

/// The place of what no file says.
const BUILT_IN: &str = "built in: saving a skill is left to a person unless [servers.skills] says otherwise";

/// Whether it is the tool by which code saves a skill. Lockhouse itself is that server.
fn is_of_skills(server: &ServerName, item: &Item) -> bool {
    server.as_str() == SKILLS && matches!(item, Item::Tool(_))
}

impl Pin {
    fn fits(&self, definition: Option<&str>) -> bool {
        definition.is_some_and(|definition| definition.eq_ignore_ascii_case(&self.digest))
    }
}
