//! The policy statements that match a call, and the order of precedence among them.
//!
//! [`Policy::decide`](crate::Policy::decide) takes the first statement that applies to the call;
//! [`explain`](crate::explain()) shows all statements that match.

use lockhouse_protocol::ServerName;

use crate::approval_requirement::ApprovalRequirement;
use crate::call::Call;
use crate::call_target::CallTarget;
use crate::condition::{Condition, ConditionResult, PathResolution};
use crate::effect::Effect;
use crate::layer::{Layer, LayerView, ViewScope};
use crate::list::{ListEntry, PatternList};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::source::SourceLocation;
use crate::table::{Pin, ServerTable};

/// The reserved server name under which policies decide about saved skills. No upstream server can have this name.
pub const SKILLS: &str = "skills";

/// A policy statement: a part of a policy that matches a call and can decide it, or the default that applies when no
/// part does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Statement<'p> {
    /// An entry of the server's `deny` list, which outranks all other statements.
    InDeny(&'p ListEntry),
    /// A pin: the accepted definition of a tool. It denies the call when the tool's current definition differs
    /// from the accepted one.
    Pin(&'p Pin),
    /// A rule whose tool pattern matches the called tool.
    Rule(&'p Rule),
    /// An entry of the server's `ask` list, which requires approval for the call.
    Ask(&'p ListEntry),
    /// An entry that allows the call, in the server's list for this kind of target: `allow`, `resources` or `prompts`.
    Allow(&'p ListEntry),
    /// The list `resources` or `prompts` of the server's policy table. If this list exists, AI clients may request
    /// which resources or prompts the server has. The server's answer is then filtered by the entries of the policy's
    /// list.
    Listing(&'p PatternList),
    /// The default of a server table whose allowlist has no entry for the call: the call is denied.
    NotInAllow(&'p ServerTable, &'p PatternList),
    /// The default of a server table that has no allowlist for calls of this kind: the call is denied.
    NoAllowList(&'p ServerTable),
    /// The default for saving a skill when the policy has no `[servers.skills]`: approval is required.
    Skills,
    /// The default for a person whom no role permits to run programs: the call is denied.
    NoRole,
    /// The default when the policy has no table for the server: the call is denied.
    NoServerTable,
    /// The default when there is no policy: the call is denied.
    NoPolicy,
}

/// Why a policy statement that matches a call's server and tool does not apply to the call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotApplicable<'p> {
    /// This condition of the rule is not met. The second value is the result of its evaluation.
    Condition(&'p Condition, ConditionResult),
    /// The statement is a pin, and the tool's current definition equals the pinned one, so the pin does not deny
    /// the call.
    Pinned,
}

impl<'p> LayerView<'p> {
    /// Returns the policy statements that match calls of `item`, highest precedence first. The last one is a default
    /// that applies to every call.
    pub(crate) fn statements(
        self,
        server: &ServerName,
        item: &CallTarget,
    ) -> impl Iterator<Item = Statement<'p>> {
        let table = self.servers.get(server);
        let tool = match item {
            CallTarget::Tool(tool) => Some(tool),
            _ => None,
        };
        // Only the list `resources` or `prompts` decides about a listing.
        let denied =
            table.filter(|_| !matches!(item, CallTarget::List(_))).and_then(|table| table.deny.as_ref());
        let denied = denied.into_iter().flat_map(|deny| deny.denies(item)).map(Statement::InDeny);
        let of_tool = table.zip(tool);
        let pinned = of_tool.and_then(|(table, tool)| table.pins.get(tool)).map(Statement::Pin);
        let rules = of_tool
            .into_iter()
            .flat_map(|(table, tool)| table.rules.for_tool(tool.as_str()))
            .map(Statement::Rule);
        let listed = table.into_iter().flat_map(|table| list_statements(table, item));
        let last = match (table, table.and_then(|table| table.allowlist_for(item))) {
            (Some(_), Some(list)) if matches!(item, CallTarget::List(_)) => Statement::Listing(list),
            (Some(table), Some(list)) => Statement::NotInAllow(table, list),
            (Some(table), None) => Statement::NoAllowList(table),
            // A client's own tables are allowlists, so they deny skills that they do not name.
            (None, _) if matches!(self.scope, ViewScope::Everyone) && is_of_skills(server, item) => {
                Statement::Skills
            }
            (None, _) if matches!(self.scope, ViewScope::NoRole) => Statement::NoRole,
            (None, _) if self.layer.source.is_none() => Statement::NoPolicy,
            (None, _) => Statement::NoServerTable,
        };
        denied.chain(pinned).chain(rules).chain(listed).chain([last])
    }

    /// Returns the statement of highest precedence that applies to the call in this view of the policy.
    pub(crate) fn deciding_statement(self, call: &Call, paths: PathResolution<'_>) -> Statement<'p> {
        let mut statements = self.statements(&call.server, &call.item);
        statements
            .find(|statement| statement.evaluate(call, paths).is_ok())
            .unwrap_or(Statement::NoServerTable)
    }

    /// Whether this policy view permits a call of `item`, with or without approval, for at least some arguments.
    /// Assumes that the tool's definition is the one that the policy pins.
    pub(crate) fn may_permit(self, server: &ServerName, item: &CallTarget) -> bool {
        for statement in self.statements(server, item) {
            match statement {
                Statement::Pin(_) => {}
                Statement::Rule(rule) if rule.effect == Effect::Deny && !rule.conditions.is_empty() => {}
                statement => return statement.effect() != Effect::Deny,
            }
        }
        false
    }

    /// Whether this policy view permits the reading of at least one resource whose URI starts with `beginning`.
    pub(crate) fn may_permit_prefix(self, server: &ServerName, beginning: &str) -> bool {
        let Some(table) = self.servers.get(server) else { return false };
        let any = |list: &Option<PatternList>, is_so: fn(&Pattern, &str) -> bool| {
            list.as_ref()
                .is_some_and(|list| list.entries.iter().any(|entry| is_so(&entry.pattern, beginning)))
        };
        !any(&table.deny, Pattern::covers_prefix) && any(&table.resources, Pattern::overlaps_prefix)
    }
}

/// Returns the entries of `ask` and of the allowlist that match `item`. An entry with a more specific pattern comes
/// first. Of two equally specific entries, the entry of `ask` comes first.
fn list_statements<'p>(table: &'p ServerTable, item: &CallTarget) -> Vec<Statement<'p>> {
    let rank =
        |entry: &ListEntry| (entry.pattern.is_starred(), std::cmp::Reverse(entry.pattern.stem().len()));
    if matches!(item, CallTarget::List(_)) {
        return Vec::new();
    }
    let asked = table.ask.as_ref().filter(|_| matches!(item, CallTarget::Tool(_)));
    let asked =
        asked.into_iter().flat_map(|ask| ask.permits(item)).map(|entry| (rank(entry), Statement::Ask(entry)));
    let allow = table.allowlist_for(item);
    let allowed = allow
        .into_iter()
        .flat_map(|list| list.permits(item))
        .map(|entry| (rank(entry), Statement::Allow(entry)));
    let mut all: Vec<_> = asked.chain(allowed).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, statement)| statement).collect()
}

impl<'p> Statement<'p> {
    /// Checks whether the policy statement applies to the call.
    ///
    /// # Errors
    /// Returns why the statement does not apply.
    pub(crate) fn evaluate(self, call: &Call, paths: PathResolution<'_>) -> Result<(), NotApplicable<'p>> {
        match self {
            Self::Pin(pin) if pin.fits(call.definition.as_deref()) => Err(NotApplicable::Pinned),
            Self::Rule(rule) => rule
                .evaluate(&call.arguments, paths)
                .map_err(|(condition, result)| NotApplicable::Condition(condition, result)),
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
            | Self::NoRole
            | Self::NoServerTable
            | Self::NoPolicy => Effect::Deny,
        }
    }

    /// Returns what the approval of a call requires, if this statement decides it.
    pub(crate) fn requirement(self) -> ApprovalRequirement {
        match self {
            Self::Rule(rule) => rule.requirement,
            _ => ApprovalRequirement::default(),
        }
    }

    /// Whether the policy statement is a default, which applies when no part of the policy does.
    pub(crate) fn is_fallback(self) -> bool {
        matches!(
            self,
            Self::NotInAllow(..)
                | Self::NoAllowList(_)
                | Self::Skills
                | Self::NoRole
                | Self::NoServerTable
                | Self::NoPolicy
        )
    }

    /// Returns the line of the policy document that contains the statement, counted from 1. For the default of a server
    /// table, this is the line of the allowlist or of the table. `None` for a default that no line states.
    pub(crate) fn line(self) -> Option<usize> {
        match self {
            Self::InDeny(entry) | Self::Ask(entry) | Self::Allow(entry) => Some(entry.line),
            Self::Pin(pin) => Some(pin.line),
            Self::Rule(rule) => Some(rule.line),
            Self::Listing(list) | Self::NotInAllow(_, list) => Some(list.line),
            Self::NoAllowList(table) => Some(table.line),
            Self::Skills | Self::NoRole | Self::NoServerTable | Self::NoPolicy => None,
        }
    }

    /// Returns the location of the statement in the policy document; `None` for a default that no line states. The
    /// built-in default for skills has a location without a line number.
    pub(crate) fn location(self, layer: &Layer) -> Option<SourceLocation> {
        match self {
            Self::Skills => Some(SourceLocation { path: BUILT_IN.to_owned(), line: 0 }),
            statement => statement.line().map(|line| layer.location(line)),
        }
    }
}

/// The text that is shown as the location of the built-in default for saving skills.
const BUILT_IN: &str = "built in: saving a skill requires approval unless [servers.skills] says otherwise";

/// Whether a call of `item` saves a skill: it calls a tool of the reserved server [`SKILLS`], which Lockhouse itself
/// serves.
fn is_of_skills(server: &ServerName, item: &CallTarget) -> bool {
    server.as_str() == SKILLS && matches!(item, CallTarget::Tool(_))
}

impl Pin {
    fn fits(&self, definition: Option<&str>) -> bool {
        definition.is_some_and(|definition| definition.eq_ignore_ascii_case(&self.digest))
    }
}
