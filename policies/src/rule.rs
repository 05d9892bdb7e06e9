//! Policy rules. A rule allows, denies or requires approval for calls of a tool whose arguments meet its
//! conditions.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::approval_requirement::ApprovalRequirement;
use crate::condition::{Condition, ConditionResult, PathResolution};
use crate::effect::Effect;
use crate::pattern::Pattern;
use crate::pattern_index::PatternIndex;

/// The keys of a rule in a document that say what an approval requires.
pub(crate) const APPROVAL_KEYS: [&str; 4] = ["presence", "approvers", "not", "expires_seconds"];

/// A policy rule: its effect applies to calls of the tools that match a pattern, if all of its conditions are met.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) tool: Pattern,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) effect: Effect,
    /// What the approval of a call requires. Only rules that ask have other requirements than the default.
    pub(crate) requirement: ApprovalRequirement,
    /// The line of the rule's tool pattern in the policy document, counted from 1.
    pub(crate) line: usize,
    /// Byte range of the rule's tool pattern in the policy document.
    pub(crate) span: Range<usize>,
}

/// The rules of a server's policy table, in order of precedence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    all: Vec<Rule>,
    by_tool: PatternIndex,
}

impl Rule {
    /// Checks whether the rule applies to a call with these arguments.
    ///
    /// # Errors
    /// Returns the first condition that does not count as met, and the result of its evaluation.
    pub(crate) fn evaluate(
        &self,
        arguments: &Map<String, Value>,
        paths: PathResolution<'_>,
    ) -> Result<(), (&Condition, ConditionResult)> {
        for condition in &self.conditions {
            let result = condition.evaluate(arguments, self.effect, paths);
            if !result.satisfies(self.effect) {
                return Err((condition, result));
            }
        }
        Ok(())
    }

    /// Returns the conditions of the rule that cannot be evaluated for these arguments, each with the reason.
    pub(crate) fn unknown<'r>(
        &'r self,
        arguments: &'r Map<String, Value>,
        paths: PathResolution<'r>,
    ) -> impl Iterator<Item = (&'r Condition, &'static str)> {
        self.conditions.iter().filter_map(move |condition| {
            match condition.evaluate(arguments, self.effect, paths) {
                ConditionResult::Unknown(why) => Some((condition, why)),
                _ => None,
            }
        })
    }

    /// Returns a value for comparison with another rule: the stricter one is greater.
    pub(crate) fn strictness(&self) -> impl Ord + use<> {
        (self.effect, self.requirement.strictness())
    }

    /// Returns the conditions of the rule as the end of a sentence, such as `` when `owner` is "acme"``, with a
    /// leading space. The text is empty if the rule has no conditions.
    pub(crate) fn when(&self) -> String {
        let all: Vec<_> = self.conditions.iter().map(ToString::to_string).collect();
        if all.is_empty() { String::new() } else { format!(" when {}", all.join(" and ")) }
    }
}

impl Rules {
    /// Sorts the rules by precedence. Among rules with equally specific tool patterns, those with more conditions
    /// come first; among these, the stricter ones, and those whose approval requires more.
    pub(crate) fn new(mut all: Vec<Rule>) -> Self {
        all.sort_by_key(|rule| (std::cmp::Reverse((rule.conditions.len(), rule.strictness())), rule.line));
        let by_tool = PatternIndex::new(all.iter().map(|rule| (rule.tool.stem(), rule.tool.is_starred())));
        Self { all, by_tool }
    }

    /// Returns the rules whose tool pattern matches the tool, in order of precedence.
    pub(crate) fn for_tool(&self, tool: &str) -> impl Iterator<Item = &Rule> {
        self.by_tool.matching(tool).filter_map(|number| self.all.get(number))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule for \"{}\"{}", self.tool, self.when())
    }
}
