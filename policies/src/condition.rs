//! What a rule asks of an argument, and whether a call's arguments meet it.

mod ambiguous;
mod glob;
mod host;
mod number;
mod path;
mod scalar;

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::call::Links;
use crate::effect::Effect;

pub(crate) use ambiguous::{becomes_dots, is_ambiguous};
pub(crate) use glob::Glob;
pub(crate) use host::Host;
pub(crate) use number::Number;
pub(crate) use path::Root;
pub(crate) use scalar::Scalar;

/// A condition on one argument.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// Its name; with dots, the way to what is inside of it.
    pub(crate) argument: String,
    pub(crate) test: Test,
    /// Whether a call without this argument meets it.
    pub(crate) optional: bool,
    /// Where the argument's name starts and ends in the text.
    pub(crate) span: Range<usize>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    OneOf(Vec<Scalar>),
    Range { min: Option<Number>, max: Option<Number> },
    Pattern(Vec<Glob>),
    Under(Vec<Root>),
    Host(Vec<Host>),
}

/// Whether a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Met,
    /// The argument is not there.
    Absent,
    /// It is there, and is something else.
    NotMet,
    /// Nobody can tell, and why.
    Unknown(&'static str),
}

/// What is known of where paths lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum World<'c> {
    Known(&'c Links),
    /// There are no links in it. For examples.
    Plain,
}

/// How a list of values is judged, and in what world.
#[derive(Clone, Copy, Debug)]
struct Way<'c> {
    effect: Effect,
    world: World<'c>,
}

impl Condition {
    /// For a rule that allows every one of several values has to meet the condition; for any other rule, one of them.
    pub(crate) fn judge(&self, arguments: &Map<String, Value>, effect: Effect, world: World<'_>) -> Judged {
        self.inside(arguments, &self.argument, Way { effect, world })
    }

    /// An argument may have dots in its own name. Where a name can be read in two ways, neither is taken.
    fn inside(&self, map: &Map<String, Value>, name: &str, way: Way<'_>) -> Judged {
        let mut readings = readings(map, name);
        match (readings.next(), readings.next()) {
            (None, _) => self.absent(),
            (Some((value, rest)), None) => self.value(value, rest, way),
            (Some(_), Some(_)) => Judged::Unknown("its name can be read in two ways"),
        }
    }

    fn value(&self, value: &Value, rest: Option<&str>, way: Way<'_>) -> Judged {
        match (value, rest) {
            (Value::Array(values), _) => self.each(values, rest, way),
            (Value::Object(map), Some(rest)) => self.inside(map, rest, way),
            (_, Some(_)) => Judged::Unknown("what should hold it is no object"),
            (value, None) => self.test.judge(value, way.world),
        }
    }

    fn each(&self, values: &[Value], rest: Option<&str>, way: Way<'_>) -> Judged {
        let all = values.iter().map(|value| self.value(value, rest, way));
        let rank = |judged: &Judged| match (judged, way.effect) {
            (Judged::NotMet | Judged::Absent, Effect::Allow) => 2,
            (Judged::Met, Effect::Allow) => 0,
            (Judged::Met, _) => 2,
            (Judged::NotMet | Judged::Absent, _) => 0,
            (Judged::Unknown(_), _) => 1,
        };
        all.max_by_key(rank).unwrap_or(self.absent())
    }

    fn absent(&self) -> Judged {
        if self.optional { Judged::Met } else { Judged::Absent }
    }

    /// Calls `found` with each path in the arguments whose links this condition depends on, and each of its own.
    pub(crate) fn paths<'a>(&'a self, arguments: &'a Map<String, Value>, found: &mut impl FnMut(&'a str)) {
        let Test::Under(roots) = &self.test else { return };
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
        (Value::String(text), None) if path::check(text).is_ok() => found(text),
        _ => {}
    }
}

/// What a name may mean: the whole of it, or each part before a dot and then what is inside.
fn readings<'a, 'n>(
    map: &'a Map<String, Value>,
    name: &'n str,
) -> impl Iterator<Item = (&'a Value, Option<&'n str>)> {
    let dots = name.match_indices('.').map(|(at, _)| (&name[..at], Some(&name[at + 1..])));
    let ways = std::iter::once((name, None)).chain(dots);
    ways.filter_map(|(key, rest)| Some((map.get(key)?, rest)))
}

impl Test {
    fn judge(&self, value: &Value, world: World<'_>) -> Judged {
        let text = || value.as_str().ok_or(Judged::Unknown("it is not a string"));
        let judged = match self {
            Self::OneOf(scalars) => Ok(scalar::judge(scalars, value)),
            Self::Range { min, max } => Ok(number::judge(*min, *max, value)),
            Self::Pattern(globs) => text().map(|text| Judged::of(globs.iter().any(|glob| glob.fits(text)))),
            Self::Under(roots) => text().map(|text| path::judge(roots, text, world)),
            Self::Host(hosts) => text().map(|text| host::judge(hosts, text)),
        };
        judged.unwrap_or_else(|unknown| unknown)
    }
}

impl Judged {
    fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }

    /// Whether a rule of this effect takes its condition as met. What cannot be judged is against the call.
    pub(crate) fn counts_for(self, effect: Effect) -> bool {
        match self {
            Self::Met => true,
            Self::Unknown(_) => effect != Effect::Allow,
            Self::Absent | Self::NotMet => false,
        }
    }
}

/// As a reader says it: `owner is "acme"`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.argument)?;
        match &self.test {
            Test::OneOf(scalars) => write!(f, "is {}", Alternatives(scalars)),
            Test::Range { min: Some(min), max: Some(max) } => write!(f, "is from {min} to {max}"),
            Test::Range { min: Some(min), max: None } => write!(f, "is at least {min}"),
            Test::Range { min: None, max: Some(max) } => write!(f, "is at most {max}"),
            Test::Range { min: None, max: None } => write!(f, "is a number"),
            Test::Pattern(globs) => write!(f, "fits {}", Alternatives(globs)),
            Test::Under(roots) => write!(f, "is under {}", Alternatives(roots)),
            Test::Host(hosts) => write!(f, "is a URL of {}", Alternatives(hosts)),
        }?;
        if self.optional { f.write_str(" or not there") } else { Ok(()) }
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
