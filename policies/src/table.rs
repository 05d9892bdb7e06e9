//! What a policy says about one upstream server.

use std::collections::BTreeMap;

use lockhouse_protocol::ToolName;

use crate::index::Index;
use crate::item::{Item, Listing};
use crate::limits::Limits;
use crate::list::List;
use crate::pattern::Pattern;
use crate::rule::Rules;

/// A server's table.
#[derive(Clone, Debug)]
pub(crate) struct ServerTable {
    /// As it is written: `servers.github`.
    pub(crate) name: String,
    /// The line of the server's name.
    pub(crate) line: usize,
    /// Of tools.
    pub(crate) allow: Option<List>,
    /// Of tools that a person is asked about.
    pub(crate) ask: Option<List>,
    pub(crate) resources: Option<List>,
    pub(crate) prompts: Option<List>,
    /// Of all of them.
    pub(crate) deny: Option<List>,
    pub(crate) rules: Rules,
    pub(crate) pins: BTreeMap<ToolName, Pin>,
    pub(crate) on_change: Option<(OnChange, usize)>,
    pub(crate) limits: Option<Bounds>,
    pub(crate) tool_limits: ToolLimits,
}

/// What a tool's definition has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// SHA-256, in small hexadecimal letters.
    pub(crate) digest: String,
    pub(crate) line: usize,
}

/// Limits, and the line of the first of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) limits: Limits,
    pub(crate) line: usize,
}

/// Limits of some of a server's tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolLimits {
    pub(crate) all: Vec<(Pattern, Bounds)>,
    by_tool: Index,
}

/// What becomes of a tool whose definition is not what it was when a person met it. From the mildest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnChange {
    /// It may be called as before; the change is told to whoever looks after the server.
    #[default]
    Warn,
    /// It may not be called until a person accepts the change.
    Ask,
    /// It may not be called, and no question is put to anyone.
    Block,
}

impl OnChange {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("warn", Self::Warn), ("ask", Self::Ask), ("block", Self::Block)];

    /// The choice that is written so, if there is one.
    #[must_use]
    pub fn named(written: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(name, _)| *name == written).map(|(_, choice)| choice)
    }

    /// As it is written in a policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, choice)| *choice == self).map_or("warn", |(name, _)| name)
    }
}

impl ServerTable {
    pub(crate) fn new(name: String, line: usize) -> Self {
        Self {
            name,
            line,
            allow: None,
            ask: None,
            resources: None,
            prompts: None,
            deny: None,
            rules: Rules::default(),
            pins: BTreeMap::new(),
            on_change: None,
            limits: None,
            tool_limits: ToolLimits::default(),
        }
    }

    /// The list that can permit it.
    pub(crate) fn permitting(&self, item: &Item) -> Option<&List> {
        let list = match item {
            Item::Tool(_) => &self.allow,
            Item::Resource(_) | Item::List(Listing::Resources) => &self.resources,
            Item::Prompt(_) | Item::List(Listing::Prompts) => &self.prompts,
        };
        list.as_ref()
    }

    /// Each list by its key.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&'static str, &List)> {
        let all = [
            ("allow", &self.allow),
            ("ask", &self.ask),
            ("resources", &self.resources),
            ("prompts", &self.prompts),
            ("deny", &self.deny),
        ];
        all.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?)))
    }
}

impl ToolLimits {
    pub(crate) fn new(all: Vec<(Pattern, Bounds)>) -> Self {
        let by_tool = Index::of(all.iter().map(|(pattern, _)| (pattern.stem(), pattern.is_starred())));
        Self { all, by_tool }
    }

    /// Those of one tool, the narrowest first.
    pub(crate) fn of(&self, tool: &str) -> impl Iterator<Item = &(Pattern, Bounds)> {
        self.by_tool.fitting(tool).filter_map(|number| self.all.get(number))
    }
}
