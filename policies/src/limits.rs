//! How much of what a policy permits may be used.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::source::Place;

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

/// Limits, and what they are counted for: calls with the same key share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedLimits {
    /// Such as `server github`, `tool github/create_*` or `client cursor`; it is shown to people.
    pub scope: String,
    /// The limits.
    pub limits: Limits,
    /// Where they stand.
    pub place: Place,
}
