//! How often and how much: what the policy's limits leave of a permitted call.
//!
//! Rates are counted over all executions and outlive a change of the policy; the rest is counted for each execution. A call
//! is never made to wait: what is too much is refused, with when there is room again.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use lockhouse_policies::{Limits, PermittedCall, Place, Rate, ScopedLimits};
use lockhouse_protocol::{Failure, FailureCode, ServerName, ToolName};
use serde_json::{Map, Value};

use super::failures::failure;
use super::schema::Turn;

/// Rates that are counted. A policy has no more of them than lines; above that, those of policies long gone are dropped.
const RATES_MAX: usize = 20_000;

/// What one execution has used so far.
#[derive(Debug, Default)]
pub struct Usage {
    /// By scope.
    used: Mutex<BTreeMap<String, Used>>,
    /// At checks that take long.
    pub(super) turn: Turn,
    /// Denied tools whose description was asked for, each of which is in the log once.
    looked_at: Mutex<BTreeSet<(ServerName, ToolName)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    calls: u32,
    argument_bytes: u64,
    result_bytes: u64,
}

/// A rate as it is counted: calls that share a scope and its rate share the count.
type Counted = (String, NonZeroU32, Duration, NonZeroU32);

/// What all executions together have used.
#[derive(Clone, Debug, Default)]
pub(super) struct Limiter(Arc<Mutex<HashMap<Counted, Arc<DefaultDirectRateLimiter>>>>);

/// A call that is too much, and the limit that says so.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) failure: Failure,
    pub(super) place: Place,
}

/// The limit of one execution that a call would exceed, as the object of "may have".
#[derive(Debug, thiserror::Error)]
enum ExceededLimit {
    #[error("{most} calls")]
    Calls { most: u32 },
    #[error("{most} bytes of arguments, of which {before} are used and this call needs {needed}")]
    ArgumentBytes { most: u64, before: u64, needed: u64 },
    #[error("{most} bytes of results, all of which are used")]
    ResultBytes { most: u64 },
}

/// What a call that may go out is bounded by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admitted {
    /// The shortest that applies.
    pub(super) timeout: Option<Duration>,
}

impl Usage {
    /// Whether this execution asks about a tool for the first time.
    pub(super) fn looks_first_at(&self, server: &ServerName, tool: &ToolName) -> bool {
        let mut looked_at = self.looked_at.lock();
        looked_at.insert((server.clone(), tool.clone()))
    }
}

impl Limiter {
    /// Counts the call, or says which limit it would exceed and when there is room again. A call that one limit refuses is
    /// counted by no limit of the execution, and by those rates alone that stand before the one that refuses it.
    pub(super) fn admit(
        &self,
        usage: &Usage,
        call: &PermittedCall,
        limits: &[ScopedLimits],
    ) -> Result<Admitted, Box<Refused>> {
        if limits.is_empty() {
            return Ok(Admitted::default());
        }
        let bytes = json_bytes(call.arguments());
        let mut used = usage.used.lock();
        for scoped in limits {
            let used = used.get(&scoped.scope).copied().unwrap_or_default();
            used.has_room(&scoped.limits, bytes).map_err(|limit| exhausted(scoped, &limit))?;
        }
        self.take_turn(limits)?;
        let scopes: BTreeSet<&String> = limits.iter().map(|scoped| &scoped.scope).collect();
        for scope in scopes {
            let used = used.entry(scope.clone()).or_default();
            used.calls = used.calls.saturating_add(1);
            used.argument_bytes = used.argument_bytes.saturating_add(bytes);
        }
        Ok(Admitted { timeout: limits.iter().filter_map(|scoped| scoped.limits.timeout).min() })
    }

    /// One call of every rate.
    fn take_turn(&self, limits: &[ScopedLimits]) -> Result<(), Box<Refused>> {
        let mut seen = BTreeSet::new();
        for scoped in limits {
            let Some(rate) = scoped.limits.rate else { continue };
            let counted = (scoped.scope.clone(), rate.calls, rate.per, rate.burst);
            if !seen.insert(counted.clone()) {
                continue;
            }
            if let Err(later) = self.counter(counted, rate).check() {
                return Err(too_often(scoped, rate, later.wait_time_from(DefaultClock::default().now())));
            }
        }
        Ok(())
    }

    fn counter(&self, counted: Counted, rate: Rate) -> Arc<DefaultDirectRateLimiter> {
        let mut counters = self.0.lock();
        if counters.len() >= RATES_MAX {
            counters.clear();
        }
        let counter = || Arc::new(RateLimiter::direct(quota(rate)));
        counters.entry(counted).or_insert_with(counter).clone()
    }

    /// Counts what came back. A result that is too much is not handed on.
    pub(super) fn received(
        &self,
        usage: &Usage,
        limits: &[ScopedLimits],
        bytes: usize,
    ) -> Result<(), Failure> {
        let bytes = bytes as u64;
        let mut used = usage.used.lock();
        for scoped in limits {
            let Some(most) = scoped.limits.result_bytes_per_execution else { continue };
            let before = used.get(&scoped.scope).copied().unwrap_or_default().result_bytes;
            if before.saturating_add(bytes) > most {
                return Err(failure(
                    FailureCode::ResultTooLarge,
                    format!(
                        "the call was made, and its result of {bytes} bytes is not handed on: results of {} may have {most} \
                         bytes in one execution ({}), and {before} came before; ask for less at a time",
                        scoped.scope, scoped.place
                    ),
                ));
            }
        }
        let scopes: BTreeSet<&String> = limits.iter().map(|scoped| &scoped.scope).collect();
        for scope in scopes {
            let used = used.entry(scope.clone()).or_default();
            used.result_bytes = used.result_bytes.saturating_add(bytes);
        }
        Ok(())
    }
}

impl Used {
    fn has_room(self, limits: &Limits, bytes: u64) -> Result<(), ExceededLimit> {
        if let Some(most) = limits.calls_per_execution
            && self.calls >= most
        {
            return Err(ExceededLimit::Calls { most });
        }
        if let Some(most) = limits.argument_bytes_per_execution
            && self.argument_bytes.saturating_add(bytes) > most
        {
            return Err(ExceededLimit::ArgumentBytes { most, before: self.argument_bytes, needed: bytes });
        }
        if let Some(most) = limits.result_bytes_per_execution
            && self.result_bytes >= most
        {
            return Err(ExceededLimit::ResultBytes { most });
        }
        Ok(())
    }
}

fn quota(rate: Rate) -> Quota {
    let one = (rate.per / rate.calls.get()).max(Duration::from_nanos(1));
    let quota = Quota::with_period(one).unwrap_or_else(|| Quota::per_second(rate.calls));
    quota.allow_burst(rate.burst)
}

fn exhausted(scoped: &ScopedLimits, limit: &ExceededLimit) -> Box<Refused> {
    let message = format!(
        "the call was not made: one execution may have {limit} of {} ({}); another execution begins anew",
        scoped.scope, scoped.place
    );
    Box::new(Refused { failure: failure(FailureCode::RateLimited, message), place: scoped.place.clone() })
}

fn too_often(scoped: &ScopedLimits, rate: Rate, wait: Duration) -> Box<Refused> {
    let message = format!(
        "the call was not made: the rate of {} is {rate} ({}); there is room again in {:.2} s",
        scoped.scope,
        scoped.place,
        // Rounded up: who waits for so long is not too early.
        (wait.as_secs_f64() * 100.0).ceil() / 100.0,
    );
    let failure = Failure { retryable: true, ..failure(FailureCode::RateLimited, message) };
    Box::new(Refused { failure, place: scoped.place.clone() })
}

/// What the arguments have as JSON.
fn json_bytes(arguments: &Map<String, Value>) -> u64 {
    struct Counting(u64);
    impl Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counting = Counting(0);
    serde_json::to_writer(&mut counting, arguments).map_or(u64::MAX, |()| counting.0)
}

#[cfg(test)]
mod tests;
