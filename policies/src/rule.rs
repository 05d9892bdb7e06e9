//! Rules: what becomes of a tool's calls, by their arguments.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::condition::{Condition, Judged, World};
use crate::effect::Effect;
use crate::index::Index;
use crate::pattern::Pattern;

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) tool: Pattern,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) effect: Effect,
    /// The line of its tool.
    pub(crate) line: usize,
    /// Where its tool starts and ends in the text.
    pub(crate) span: Range<usize>,
}

/// The rules of a table, in the order in which they count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    all: Vec<Rule>,
    by_tool: Index,
}

impl Rule {
    /// # Errors
    /// The first condition that is not met, and how.
    pub(crate) fn judge(
        &self,
        arguments: &Map<String, Value>,
        world: World<'_>,
    ) -> Result<(), (&Condition, Judged)> {
        for condition in &self.conditions {
            let judged = condition.judge(arguments, self.effect, world);
            if !judged.counts_for(self.effect) {
                return Err((condition, judged));
            }
        }
        Ok(())
    }

    /// The conditions of a rule that applies which nobody can tell to be met, each with the reason.
    pub(crate) fn unknown<'r>(
        &'r self,
        arguments: &'r Map<String, Value>,
        world: World<'r>,
    ) -> impl Iterator<Item = (&'r Condition, &'static str)> {
        self.conditions.iter().filter_map(move |condition| {
            match condition.judge(arguments, self.effect, world) {
                Judged::Unknown(why) => Some((condition, why)),
                _ => None,
            }
        })
    }

    /// Its conditions, as the end of a sentence.
    pub(crate) fn when(&self) -> String {
        let all: Vec<_> = self.conditions.iter().map(ToString::to_string).collect();
        if all.is_empty() { String::new() } else { format!(" when {}", all.join(" and ")) }
    }
}

impl Rules {
    /// Within what the names of their tools say, more conditions come before fewer, and the stricter before the milder.
    pub(crate) fn new(mut all: Vec<Rule>) -> Self {
        all.sort_by_key(|rule| (std::cmp::Reverse((rule.conditions.len(), rule.effect)), rule.line));
        let by_tool = Index::of(all.iter().map(|rule| (rule.tool.stem(), rule.tool.is_starred())));
        Self { all, by_tool }
    }

    /// Those for a tool, in the order in which they count.
    pub(crate) fn of(&self, tool: &str) -> impl Iterator<Item = &Rule> {
        self.by_tool.fitting(tool).filter_map(|number| self.all.get(number))
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
