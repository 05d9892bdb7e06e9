//! The table of one upstream server in a policy.

use std::collections::BTreeMap;

use lockhouse_protocol::ToolName;

use crate::call_target::{CallTarget, Listing};
use crate::limits::Limits;
use crate::list::PatternList;
use crate::pattern::Pattern;
use crate::pattern_index::PatternIndex;
use crate::rule::Rules;

/// The table of one upstream server.
#[derive(Clone, Debug)]
pub(crate) struct ServerTable {
    /// The table's name as it is written: `servers.github`.
    pub(crate) name: String,
    /// The line of the server's name, counted from 1.
    pub(crate) line: usize,
    /// Tools that may be called.
    pub(crate) allow: Option<PatternList>,
    /// Tools whose calls require approval.
    pub(crate) ask: Option<PatternList>,
    pub(crate) resources: Option<PatternList>,
    pub(crate) prompts: Option<PatternList>,
    /// Tools and resources that are denied, whatever other lists say.
    pub(crate) deny: Option<PatternList>,
    pub(crate) rules: Rules,
    pub(crate) pins: BTreeMap<ToolName, Pin>,
    pub(crate) on_change: Option<(OnChange, usize)>,
    pub(crate) limits: Option<LimitsEntry>,
    pub(crate) tool_limits: ToolLimits,
}

/// The required digest of a tool's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// SHA-256 in lowercase hexadecimal.
    pub(crate) digest: String,
    pub(crate) line: usize,
}

/// Limits, with the line of the first of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitsEntry {
    pub(crate) limits: Limits,
    pub(crate) line: usize,
}

/// Limits for tools of a server, by pattern.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolLimits {
    pub(crate) all: Vec<(Pattern, LimitsEntry)>,
    by_tool: PatternIndex,
}

/// What happens to a tool whose definition differs from the one that a user accepted, in increasing strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnChange {
    /// The tool may still be called; the server's operator gets a warning.
    #[default]
    Warn,
    /// The tool may not be called until a user accepts the change.
    Ask,
    /// The tool may not be called, and no user is asked.
    Block,
}

impl OnChange {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("warn", Self::Warn), ("ask", Self::Ask), ("block", Self::Block)];

    /// Parses the value of `on_change`.
    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(name, _)| *name == written).map(|(_, choice)| choice)
    }

    /// Returns the value as policies write it.
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

    /// Returns the list that can allow the target.
    pub(crate) fn allowlist_for(&self, item: &CallTarget) -> Option<&PatternList> {
        let list = match item {
            CallTarget::Tool(_) => &self.allow,
            CallTarget::Resource(_) | CallTarget::List(Listing::Resources) => &self.resources,
            CallTarget::Prompt(_) | CallTarget::List(Listing::Prompts) => &self.prompts,
        };
        list.as_ref()
    }

    /// Returns each list with its key.
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

    /// Returns the limits that apply to one tool, the narrowest pattern first.
    pub(crate) fn for_tool(&self, tool: &str) -> impl Iterator<Item = &(Pattern, LimitsEntry)> {
        self.by_tool.matching(tool).filter_map(|number| self.all.get(number))
    }
}
