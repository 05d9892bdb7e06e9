//! The ranges to which the values of configuration keys are restricted.

use std::fmt;
use std::ops::{RangeFrom, RangeInclusive};

use lockhouse_policies::Rate;
use serde_json::{Map, Value};

/// A restriction of the value of a configuration key, in addition to its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    Numbers {
        least: f64,
        most: f64,
    },
    /// A numeric user id of at least `least`. The largest id is excluded, since it means "no user".
    Ids {
        least: u32,
    },
    /// The value is a list with at most this many entries.
    Entries(usize),
    /// The value is a rate such as `30/min`. The string is an example rate for messages.
    Rate(&'static str),
    OneOf(&'static [&'static str]),
    /// The value is a part of a tool's name: at most this many characters of `A-Z a-z 0-9 _ -`.
    NamePart(usize),
}

impl From<RangeInclusive<f64>> for Range {
    fn from(range: RangeInclusive<f64>) -> Self {
        Self::Numbers { least: *range.start(), most: *range.end() }
    }
}

impl From<RangeInclusive<i32>> for Range {
    fn from(range: RangeInclusive<i32>) -> Self {
        Self::Numbers { least: f64::from(*range.start()), most: f64::from(*range.end()) }
    }
}

impl From<RangeFrom<u32>> for Range {
    fn from(range: RangeFrom<u32>) -> Self {
        Self::Ids { least: range.start }
    }
}

impl Range {
    pub(crate) fn has_number(&self, number: f64) -> bool {
        match self {
            Self::Numbers { least, most } => (*least..=*most).contains(&number),
            Self::Ids { least } => number >= f64::from(*least) && number < f64::from(u32::MAX),
            Self::Entries(_) | Self::Rate(_) | Self::OneOf(_) | Self::NamePart(_) => true,
        }
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        match self {
            Self::Rate(_) => Rate::parse(text).is_some(),
            Self::OneOf(choices) => choices.contains(&text),
            Self::NamePart(most) => {
                text.len() <= *most
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            }
            _ => true,
        }
    }

    pub(crate) fn has_entries(&self, count: usize) -> bool {
        if let Self::Entries(most) = self { count <= *most } else { true }
    }

    /// Adds the restriction to the JSON schema of the key's type.
    pub(super) fn add_to_schema(&self, schema: &mut Map<String, Value>) {
        match self {
            Self::Numbers { least, most } => {
                schema.insert("minimum".into(), number(*least));
                schema.insert("maximum".into(), number(*most));
            }
            Self::Ids { least } => drop(schema.insert("minimum".into(), (*least).into())),
            Self::Entries(most) => drop(schema.insert("maxItems".into(), (*most).into())),
            Self::Rate(_) => {
                schema.insert("pattern".into(), "^\\s*[0-9]+\\s*/\\s*(s|m|min|h|d)\\s*$".into());
            }
            Self::OneOf(choices) => drop(schema.insert("enum".into(), (*choices).into())),
            Self::NamePart(most) => {
                schema.insert("pattern".into(), format!("^[A-Za-z0-9_-]{{0,{most}}}$").into());
            }
        }
    }
}

/// Returns a number as JSON, without a decimal point if it is a whole number.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 { (number as i64).into() } else { number.into() }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers { least, most } => write!(f, "{least} to {most}"),
            Self::Ids { least } => write!(f, "{least} or more"),
            Self::Entries(most) => write!(f, "at most {most}"),
            Self::OneOf(choices) => {
                let quoted: Vec<String> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
                match quoted.split_last() {
                    Some((last, [])) => f.write_str(last),
                    Some((last, others)) => write!(f, "{} or {last}", others.join(", ")),
                    None => Ok(()),
                }
            }
            Self::NamePart(most) => write!(f, "at most {most} characters of A-Z a-z 0-9 _ -"),
            Self::Rate(example) => write!(f, "such as \"{example}\", per s, min, h or d"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_where_its_words_say() {
        for (range, words, within, outside) in [
            (Range::from(1..=64), "1 to 64", [1.0, 64.0], [0.0, 65.0]),
            (Range::from(0.01..=3_600.0), "0.01 to 3600", [0.01, 3_600.0], [0.0, f64::NAN]),
            (Range::from(1_000..), "1000 or more", [1_000.0, 4_294_967_294.0], [999.0, 4_294_967_295.0]),
        ] {
            assert_eq!(range.to_string(), words);
            assert!(within.iter().all(|number| range.has_number(*number)), "{words}");
            assert!(!outside.iter().any(|number| range.has_number(*number)), "{words}");
        }
        let rate = Range::Rate("30/min");
        assert!(rate.has_text("30/min") && !rate.has_text("30") && !rate.has_text("0/min"));
        let choice = Range::OneOf(&["a", "b", "c"]);
        assert!(choice.has_text("a") && !choice.has_text("d"));
        assert_eq!(choice.to_string(), "\"a\", \"b\" or \"c\"");
        assert!(Range::Entries(2).has_entries(2) && !Range::Entries(2).has_entries(3));
    }
}
