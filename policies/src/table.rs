//! The table of one upstream server in a policy.

use std::collections::BTreeMap;

use lockhouse_protocol::ToolName;

use crate::call_target::{CallTarget, Listing};
use crate::limits::Limits;
use crate::list::PatternList;
use crate::pattern::Pattern;
use crate::pattern_index::PatternIndex;
use crate::rule::Rules;

/// The policy table of one upstream server, `[servers.NAME]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerTable {
    /// The table's name as the policy document writes it, such as `servers.github`.
    pub(crate) name: String,
    /// The line of the server's name in the policy document, counted from 1.
    pub(crate) line: usize,
    /// The tools that may be called; `None` if the table has no such list.
    pub(crate) allow: Option<PatternList>,
    /// The tools whose calls require approval; `None` if the table has no such list.
    pub(crate) ask: Option<PatternList>,
    pub(crate) resources: Option<PatternList>,
    pub(crate) prompts: Option<PatternList>,
    /// The tools and resources that are denied, whatever the other lists and the rules say; `None` if the table has
    /// no such list.
    pub(crate) deny: Option<PatternList>,
    pub(crate) rules: Rules,
    pub(crate) pins: BTreeMap<ToolName, Pin>,
    pub(crate) on_change: Option<(OnChange, usize)>,
    pub(crate) limits: Option<LimitsEntry>,
    pub(crate) tool_limits: ToolLimits,
}

/// The pin of a tool: the accepted digest of its definition. Calls are permitted only while the tool's
/// current definition has this digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// SHA-256 of the tool's definition in lowercase hexadecimal.
    pub(crate) digest: String,
    pub(crate) line: usize,
}

/// The limits of a policy table, and the line of the first limit in the policy document, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitsEntry {
    pub(crate) limits: Limits,
    pub(crate) line: usize,
}

/// The limits that a server's policy table sets for some of its tools. Each limit applies to the tools whose names
/// match a pattern.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolLimits {
    pub(crate) all: Vec<(Pattern, LimitsEntry)>,
    by_tool: PatternIndex,
}

/// What happens to a tool whose definition differs from the one that a user accepted (`on_change` in a policy). The
/// variants are in order of increasing strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnChange {
    /// The tool may still be called; the operator of Lockhouse gets a warning.
    #[default]
    Warn,
    /// The tool may not be called until a user accepts the new definition.
    Ask,
    /// The tool may not be called, and no user is asked to accept the new definition.
    Block,
}

impl OnChange {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("warn", Self::Warn), ("ask", Self::Ask), ("block", Self::Block)];

    /// Parses the value of the policy key `on_change`; returns `None` if it is not `warn`, `ask` or `block`.
    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(name, _)| *name == written).map(|(_, choice)| choice)
    }

    /// Returns the value as policies write it: `warn`, `ask` or `block`.
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

    /// Returns the list of this table that can allow the target of a call: `allow` for a tool, `resources` or
    /// `prompts` for other targets. Returns `None` if the table has no such list.
    pub(crate) fn allowlist_for(&self, item: &CallTarget) -> Option<&PatternList> {
        let list = match item {
            CallTarget::Tool(_) => &self.allow,
            CallTarget::Resource(_) | CallTarget::List(Listing::Resources) => &self.resources,
            CallTarget::Prompt(_) | CallTarget::List(Listing::Prompts) => &self.prompts,
        };
        list.as_ref()
    }

    /// Returns each list of patterns in this table with its key, such as `allow`.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&'static str, &PatternList)> {
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
    pub(crate) fn new(all: Vec<(Pattern, LimitsEntry)>) -> Self {
        let by_tool =
            PatternIndex::new(all.iter().map(|(pattern, _)| (pattern.stem(), pattern.is_starred())));
        Self { all, by_tool }
    }

    /// Returns the limits whose pattern matches the tool. The limits with the most specific pattern come first.
    pub(crate) fn for_tool(&self, tool: &str) -> impl Iterator<Item = &(Pattern, LimitsEntry)> {
        self.by_tool.matching(tool).filter_map(|number| self.all.get(number))
    }
}
