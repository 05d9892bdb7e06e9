//! The limits that a policy sets on the calls that it permits: rates, counts, sizes and timeouts.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A rate limit: a maximum number of calls per period, and the part of this number that may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// The maximum number of calls per period.
    pub calls: NonZeroU32,
    /// The length of the period in which at most `calls` calls may be made.
    pub per: Duration,
    /// The maximum number of calls that may be made in immediate succession after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Returns the rate of `calls` calls per period, of which `burst` may be made at once. A number of zero counts as one.
    #[must_use]
    pub const fn new(calls: u32, per: Duration, burst: u32) -> Self {
        const fn at_least_one(number: u32) -> NonZeroU32 {
            NonZeroU32::MIN.saturating_add(number.saturating_sub(1))
        }
        Self { calls: at_least_one(calls), per, burst: at_least_one(burst) }
    }

    /// Parses a rate such as `60/min`. Units are `s`, `m` or `min`, `h` and `d`. Returns `None` if the text is not a
    /// rate.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (calls, unit) = text.split_once('/')?;
        let calls: NonZeroU32 = calls.trim().parse().ok()?;
        Some(Self { calls, per: Duration::from_secs(seconds(unit.trim())?), burst: calls })
    }
}

pub(crate) fn seconds(unit: &str) -> Option<u64> {
    match unit {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    }
}

/// The limits that a policy sets for one scope, such as a server or an AI client. A field is `None` if the policy
/// sets no such limit. The limits of the configuration apply in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximum rate of calls, over all executions together.
    pub rate: Option<Rate>,
    /// The maximum number of calls in one execution.
    pub calls_per_execution: Option<u32>,
    /// The maximum total size of the arguments of one execution's calls, in bytes.
    pub argument_bytes_per_execution: Option<u64>,
    /// The maximum total size of the results of one execution's calls, in bytes.
    pub result_bytes_per_execution: Option<u64>,
    /// The maximum duration of one call.
    pub timeout: Option<Duration>,
}

/// Writes the rate for messages, such as `60/min` or `10 in 2 h, 5 at once`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.per.as_secs();
        let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
        let (unit, length) =
            units.into_iter().find(|(_, length)| seconds.is_multiple_of(*length)).unwrap_or(("s", 1));
        match seconds / length {
            1 => write!(f, "{}/{unit}", self.calls),
            count => write!(f, "{} in {count} {unit}", self.calls),
        }?;
        if self.burst == self.calls { Ok(()) } else { write!(f, ", {} at once", self.burst) }
    }
}
