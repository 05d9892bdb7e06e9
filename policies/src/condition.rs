//! Conditions of policy rules on the arguments of a call, and their evaluation.

mod ambiguous_paths;
mod glob;
mod number;
mod path_under;
mod scalar;
mod url_host;

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::call::ResolvedPaths;
use crate::effect::Effect;

pub(crate) use ambiguous_paths::{is_ambiguous, may_become_parent_dir};
pub(crate) use glob::Glob;
pub(crate) use number::Number;
pub(crate) use path_under::RootFolder;
pub(crate) use scalar::Scalar;
pub(crate) use url_host::HostPattern;

/// A condition of a policy rule on one argument of a call.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The argument's name. A dot leads to a member of an object: `filter.owner` is the member `owner` of the
    /// argument `filter`.
    pub(crate) argument: String,
    pub(crate) test: ConditionTest,
    /// Whether a call without the argument meets the condition.
    pub(crate) optional: bool,
    /// Byte range of the argument's name in the policy document.
    pub(crate) span: Range<usize>,
}

/// The test that a condition applies to the argument's value.
#[derive(Clone, Debug)]
pub(crate) enum ConditionTest {
    OneOf(Vec<Scalar>),
    Range { min: Option<Number>, max: Option<Number> },
    Pattern(Vec<Glob>),
    Under(Vec<RootFolder>),
    Host(Vec<HostPattern>),
}

/// The result of evaluating a policy condition on a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionResult {
    Met,
    /// The call lacks the argument that the condition is about, and the argument is not optional.
    Absent,
    /// The argument's value does not meet the condition.
    NotMet,
    /// The condition could not be evaluated; the text says why. The condition then fails closed: an `allow` rule does
    /// not apply, and an `ask` or `deny` rule does.
    Unknown(&'static str),
}

/// What is known about the symbolic links in the paths of a call's arguments. Only `under` conditions use this value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathResolution<'c> {
    Known(&'c ResolvedPaths),
    /// The paths are assumed to contain no symbolic links. Used to check the examples that a rule gives in `match` and
    /// `not_match`.
    NoSymlinks,
}

/// The settings for evaluating a condition: the effect of its rule and the known symbolic links. If an
/// argument is a list, the effect decides whether all elements or only one must meet the condition.
#[derive(Clone, Copy, Debug)]
struct EvaluationMode<'c> {
    effect: Effect,
    paths: PathResolution<'c>,
}

impl Condition {
    /// Evaluates the condition on a call's arguments; `effect` is the effect of the condition's rule. If the argument
    /// is a list, each element has to meet the condition in an `allow` rule; in an `ask` or `deny` rule one element
    /// suffices.
    pub(crate) fn evaluate(
        &self,
        arguments: &Map<String, Value>,
        effect: Effect,
        paths: PathResolution<'_>,
    ) -> ConditionResult {
        self.inside(arguments, &self.argument, EvaluationMode { effect, paths })
    }

    /// Evaluates the condition on the value that the dotted `name` leads to, starting at `map`. Member names may
    /// contain dots themselves. If `name` can therefore be read in several ways, the result is `Unknown`.
    fn inside(&self, map: &Map<String, Value>, name: &str, mode: EvaluationMode<'_>) -> ConditionResult {
        let mut readings = readings(map, name);
        match (readings.next(), readings.next()) {
            (None, _) => self.absent(),
            (Some((value, rest)), None) => self.value(value, rest, mode),
            (Some(_), Some(_)) => ConditionResult::Unknown("its name is ambiguous"),
        }
    }

    fn value(&self, value: &Value, rest: Option<&str>, mode: EvaluationMode<'_>) -> ConditionResult {
        match (value, rest) {
            (Value::Array(values), _) => self.each(values, rest, mode),
            (Value::Object(map), Some(rest)) => self.inside(map, rest, mode),
            (_, Some(_)) => ConditionResult::Unknown("its parent is not an object"),
            (value, None) => self.test.evaluate(value, mode.paths),
        }
    }

    fn each(&self, values: &[Value], rest: Option<&str>, mode: EvaluationMode<'_>) -> ConditionResult {
        let all = values.iter().map(|value| self.value(value, rest, mode));
        let rank = |result: &ConditionResult| match (result, mode.effect) {
            (ConditionResult::NotMet | ConditionResult::Absent, Effect::Allow) => 2,
            (ConditionResult::Met, Effect::Allow) => 0,
            (ConditionResult::Met, _) => 2,
            (ConditionResult::NotMet | ConditionResult::Absent, _) => 0,
            (ConditionResult::Unknown(_), _) => 1,
        };
        all.max_by_key(rank).unwrap_or(self.absent())
    }

    fn absent(&self) -> ConditionResult {
        if self.optional { ConditionResult::Met } else { ConditionResult::Absent }
    }

    /// Calls `found` with each path whose symbolic links must be resolved before an `under` condition can be evaluated:
    /// the folders of the condition, and the valid paths in the argument. Does nothing for other conditions.
    pub(crate) fn paths<'a>(&'a self, arguments: &'a Map<String, Value>, found: &mut impl FnMut(&'a str)) {
        let ConditionTest::Under(roots) = &self.test else { return };
        roots.iter().for_each(|root| found(root.as_str()));
        paths_inside(arguments, &self.argument, found);
    }
}

fn paths_inside<'a>(map: &'a Map<String, Value>, name: &str, found: &mut impl FnMut(&'a str)) {
    for (value, rest) in readings(map, name) {
        paths_of(value, rest, found);
    }
}

fn paths_of<'a>(value: &'a Value, rest: Option<&str>, found: &mut impl FnMut(&'a str)) {
    match (value, rest) {
        (Value::Array(values), _) => values.iter().for_each(|value| paths_of(value, rest, found)),
        (Value::Object(map), Some(rest)) => paths_inside(map, rest, found),
        (Value::String(text), None) if path_under::check(text).is_ok() => found(text),
        _ => {}
    }
}

/// Returns each member of `map` that a dotted name can lead to, with the rest of the name. For the name `a.b`, this
/// function returns the member `a.b` without a rest, and the member `a` with the rest `b`. The caller looks up the rest
/// inside the member.
fn readings<'a, 'n>(
    map: &'a Map<String, Value>,
    name: &'n str,
) -> impl Iterator<Item = (&'a Value, Option<&'n str>)> {
    let dots = name.match_indices('.').map(|(at, _)| (&name[..at], Some(&name[at + 1..])));
    let readings = std::iter::once((name, None)).chain(dots);
    readings.filter_map(|(key, rest)| Some((map.get(key)?, rest)))
}

impl ConditionTest {
    fn evaluate(&self, value: &Value, paths: PathResolution<'_>) -> ConditionResult {
        let text = || value.as_str().ok_or(ConditionResult::Unknown("it is not a string"));
        let result = match self {
            Self::OneOf(scalars) => Ok(scalar::evaluate(scalars, value)),
            Self::Range { min, max } => Ok(number::evaluate(*min, *max, value)),
            Self::Pattern(globs) => {
                text().map(|text| ConditionResult::from_bool(globs.iter().any(|glob| glob.matches(text))))
            }
            Self::Under(roots) => text().map(|text| path_under::evaluate(roots, text, paths)),
            Self::Host(hosts) => text().map(|text| url_host::evaluate(hosts, text)),
        };
        result.unwrap_or_else(|unknown| unknown)
    }
}

impl ConditionResult {
    fn from_bool(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }

    /// Whether the condition counts as met in a rule with this effect. A condition that cannot be evaluated fails
    /// closed: it counts as not met in an `allow` rule, and as met in `ask` and `deny` rules.
    pub(crate) fn satisfies(self, effect: Effect) -> bool {
        match self {
            Self::Met => true,
            Self::Unknown(_) => effect != Effect::Allow,
            Self::Absent | Self::NotMet => false,
        }
    }
}

/// Writes the condition as a phrase for messages, such as `` `owner` is "acme" ``.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.argument)?;
        match &self.test {
            ConditionTest::OneOf(scalars) => write!(f, "is {}", Alternatives(scalars)),
            ConditionTest::Range { min: Some(min), max: Some(max) } => write!(f, "is from {min} to {max}"),
            ConditionTest::Range { min: Some(min), max: None } => write!(f, "is at least {min}"),
            ConditionTest::Range { min: None, max: Some(max) } => write!(f, "is at most {max}"),
            ConditionTest::Range { min: None, max: None } => write!(f, "is a number"),
            ConditionTest::Pattern(globs) => write!(f, "matches {}", Alternatives(globs)),
            ConditionTest::Under(roots) => write!(f, "is under {}", Alternatives(roots)),
            ConditionTest::Host(hosts) => write!(f, "is a URL of {}", Alternatives(hosts)),
        }?;
        if self.optional { f.write_str(" or absent") } else { Ok(()) }
    }
}

struct Alternatives<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Alternatives<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(" or ")?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}
