//! How much of what a policy permits may be used.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// So many calls in a time, some of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls in `per`.
    pub calls: NonZeroU32,
    /// The time.
    pub per: Duration,
    /// Calls that may be made at once after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Such as `60/min`: per `s`, `min`, `h` or `d`.
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

/// What bounds the use of one thing. `None` is unbounded by the policy; the configuration's own limits hold besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Over all executions.
    pub rate: Option<Rate>,
    /// Calls of one execution.
    pub calls_per_execution: Option<u32>,
    /// Bytes of arguments of one execution's calls together.
    pub argument_bytes_per_execution: Option<u64>,
    /// Bytes of results of one execution's calls together.
    pub result_bytes_per_execution: Option<u64>,
    /// Of one call.
    pub timeout: Option<Duration>,
}

/// As it is written in a policy.
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
