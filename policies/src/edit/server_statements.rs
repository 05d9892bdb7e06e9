//! The entries and rules of a server's table in the text of a policy, with their lines. Only the tables for all AI
//! clients are read.

use std::cmp::Reverse;
use std::ops::Range;

use lockhouse_protocol::ServerName;
use toml_edit::{Document, Item, TableLike, Value};

use super::server_table::server_table;
use crate::call_target::CallTarget;
use crate::effect::Effect;
use crate::pattern::{Pattern, PatternKind};
use crate::source::LineIndex;

/// An entry of the list `allow`, `ask` or `deny` of a server's table in a policy, or one of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The effect of the list or the rule.
    pub effect: Effect,
    /// The tools that the statement is about.
    pub pattern: Pattern,
    /// The position in its list, or among the rules.
    pub(super) index: usize,
    /// The line of the pattern in the policy, counted from 1.
    pub line: usize,
    kind: StatementKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementKind {
    Entry,
    /// A rule without conditions, which applies to every call.
    Rule,
    ConditionalRule,
}

/// All entries and rules for tools in a server's table.
#[derive(Debug, Default)]
pub(super) struct ServerStatements {
    pub(super) all: Vec<Statement>,
}

impl Statement {
    /// Whether the statement is a rule, and not an entry of a list.
    #[must_use]
    pub fn is_rule(&self) -> bool {
        self.kind != StatementKind::Entry
    }

    /// Whether the statement applies to every call of its tools, whatever the arguments are.
    pub(super) fn applies_always(&self) -> bool {
        self.kind != StatementKind::ConditionalRule
    }

    /// Describes the statement as `policy explain` does, such as `"list_*" in allow`.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { effect, pattern, .. } = self;
        match self.kind {
            StatementKind::Entry => format!("\"{pattern}\" in {effect}"),
            StatementKind::Rule => format!("the rule for \"{pattern}\" with the effect {effect}"),
            StatementKind::ConditionalRule => {
                format!("the rule for \"{pattern}\" with conditions and the effect {effect}")
            }
        }
    }

    /// Orders statements of one kind by precedence: an exact name first, then longer prefixes before shorter ones, and
    /// stricter effects before others.
    fn rank(&self) -> (bool, Reverse<usize>, Reverse<Effect>) {
        let pattern = self.pattern.to_string();
        let is_prefix = pattern.ends_with('*');
        (is_prefix, Reverse(pattern.len()), Reverse(self.effect))
    }
}

impl ServerStatements {
    /// Reads the table `[servers.NAME]` of a valid policy. There are no statements if the policy has no such table.
    pub(super) fn read(text: &str, server: &ServerName) -> Self {
        let Ok(document) = Document::parse(text) else { return Self::default() };
        let Some(table) = server_table(document.as_table(), server) else { return Self::default() };
        let lines = LineIndex::new(text);
        let entries = Effect::ALL.into_iter().flat_map(|effect| entries(&lines, table, effect));
        Self { all: entries.chain(rules(&lines, table)).collect() }
    }

    /// Returns the statement at this line because of which calls of a tool require approval: a rule, or an entry of `ask`.
    pub(super) fn requiring_approval(&self, item: &CallTarget, line: usize) -> Option<&Statement> {
        let is_meant = |statement: &&Statement| {
            statement.effect == Effect::Ask && statement.line == line && statement.pattern.permits(item)
        };
        self.all.iter().filter(is_meant).min_by_key(|statement| !statement.is_rule())
    }

    pub(super) fn without(&self, removed: &[Statement]) -> Self {
        Self { all: self.all.iter().filter(|statement| !removed.contains(statement)).cloned().collect() }
    }

    /// Returns the statement with a wider pattern that decides about all calls of these tools, although the tools have
    /// an entry with the effect `wanted` in a list. `None` if there is no such statement: nothing overrides an entry of
    /// `deny`, and a rule for exactly the pattern has precedence over wider rules.
    pub(super) fn overriding(&self, pattern: &Pattern, wanted: Effect) -> Option<&Statement> {
        if wanted == Effect::Deny {
            return None;
        }
        let is_wider = |statement: &&Statement| {
            statement.pattern != *pattern && statement.pattern.covers(pattern) && statement.applies_always()
        };
        let wider = || self.all.iter().filter(is_wider);
        let denies = |statement: &&Statement| !statement.is_rule() && statement.effect == Effect::Deny;
        if let Some(denying) = wider().filter(denies).min_by_key(|statement| statement.rank()) {
            return Some(denying);
        }
        let is_exact_rule = |statement: &Statement| {
            statement.is_rule() && statement.applies_always() && statement.pattern == *pattern
        };
        if self.all.iter().any(is_exact_rule) {
            return None;
        }
        let rule = wider().filter(|statement| statement.is_rule()).min_by_key(|statement| statement.rank());
        rule.filter(|rule| rule.effect != wanted)
    }

    /// Whether an entry of `deny` matches all tools that the pattern matches.
    pub(super) fn is_denied(&self, pattern: &Pattern) -> bool {
        let denies = |statement: &Statement| !statement.is_rule() && statement.effect == Effect::Deny;
        self.all.iter().any(|statement| denies(statement) && statement.pattern.covers(pattern))
    }

    /// Returns the effect that the statements without conditions have on all tools that the pattern matches; `None` if
    /// none of them matches all of these tools, so that they are denied.
    pub(super) fn unconditional_effect(&self, pattern: &Pattern) -> Option<Effect> {
        if self.is_denied(pattern) {
            return Some(Effect::Deny);
        }
        let covering = self
            .all
            .iter()
            .filter(|statement| statement.applies_always() && statement.pattern.covers(pattern));
        covering.min_by_key(|statement| (!statement.is_rule(), statement.rank())).map(|found| found.effect)
    }

    /// Returns the statements that decide otherwise about some of the tools that match the pattern, or about some of
    /// their calls.
    pub(super) fn exceptions(&self, pattern: &Pattern, wanted: Effect) -> Vec<Statement> {
        let is_exception = |statement: &&Statement| {
            let is_narrower = statement.pattern != *pattern && pattern.covers(&statement.pattern);
            let concerns_some_calls = !statement.applies_always() && statement.pattern.covers(pattern);
            statement.effect != wanted && (is_narrower || concerns_some_calls)
        };
        // Nothing overrides `deny`.
        let all = self.all.iter().filter(|_| !(wanted == Effect::Deny && self.is_denied(pattern)));
        all.filter(is_exception).cloned().collect()
    }
}

fn entries(lines: &LineIndex, table: &dyn TableLike, effect: Effect) -> Vec<Statement> {
    let list = table.get(effect.as_str()).and_then(Item::as_array);
    let values = list.into_iter().flat_map(toml_edit::Array::iter).enumerate();
    let entry = |(index, value): (usize, &Value)| {
        // An entry of `deny` with a colon is for URIs, and matches no tool.
        let pattern = Pattern::parse(PatternKind::Tools, value.as_str()?).ok()?;
        let line = line_of(lines, value.span());
        Some(Statement { effect, pattern, index, line, kind: StatementKind::Entry })
    };
    values.filter_map(entry).collect()
}

fn rules(lines: &LineIndex, table: &dyn TableLike) -> Vec<Statement> {
    let tables: Vec<&dyn TableLike> = match table.get("rules") {
        Some(Item::ArrayOfTables(tables)) => tables.iter().map(|rule| rule as &dyn TableLike).collect(),
        Some(Item::Value(Value::Array(inline))) => {
            inline.iter().filter_map(|rule| Some(rule.as_inline_table()? as &dyn TableLike)).collect()
        }
        _ => Vec::new(),
    };
    let rule = |(index, rule): (usize, &dyn TableLike)| {
        let tool = rule.get("tool")?;
        let written = rule.get("effect")?.as_str()?;
        let effect = Effect::ALL.into_iter().find(|effect| effect.as_str() == written)?;
        let pattern = Pattern::parse(PatternKind::Tools, tool.as_str()?).ok()?;
        let conditions = rule.get("when").and_then(Item::as_table_like);
        let kind = match conditions.is_none_or(|conditions| conditions.is_empty()) {
            true => StatementKind::Rule,
            false => StatementKind::ConditionalRule,
        };
        Some(Statement { effect, pattern, index, line: line_of(lines, tool.span()), kind })
    };
    tables.into_iter().enumerate().filter_map(rule).collect()
}

fn line_of(lines: &LineIndex, span: Option<Range<usize>>) -> usize {
    span.map_or(0, |span| lines.line_at(span.start))
}
