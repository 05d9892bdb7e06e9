//! Enforces the limits of the policy: call rates, and quotas of each execution.
//!
//! Rates are counted across executions and survive policy changes; quotas are counted for each execution. A call
//! never waits for a limit: a call that exceeds a limit is refused. The error of a rate limit says when to try
//! again.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_cluster::LeasedRates;
use lockhouse_policies::{Limits, PermittedCall, Rate, ScopedLimits, SourceLocation};
use lockhouse_protocol::{Failure, FailureCode, ServerName, ToolName};
use serde_json::{Map, Value};

use super::schema::BlockingSlot;

/// The used part of each of the policy's quotas, for one execution.
#[derive(Debug, Default)]
pub struct Usage {
    /// What the execution has used of each quota. The key is the scope of the quota, such as a server or tool.
    used: Mutex<BTreeMap<String, ScopeUsage>>,
    /// Limits the slow argument checks of the execution's calls, which run on background threads, to one at a
    /// time.
    pub(super) slow_check_slot: BlockingSlot,
    /// The denied tools about which the execution has requested information. Only the first request about each tool
    /// is recorded as a denial.
    denied_lookups: Mutex<BTreeSet<(ServerName, ToolName)>>,
}

#[derive(Clone, Copy, Debug, Default)]
/// What one execution has used of the quotas that apply to one scope, such as a server or a tool.
struct ScopeUsage {
    calls: u32,
    argument_bytes: u64,
    result_bytes: u64,
}

/// The counters of rate limits, which all executions share. A counter is identified by the scope of its limit and the
/// rate, and by the person if each has a counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Limiter(Arc<LimiterInner>);

#[derive(Debug, Default)]
struct LimiterInner {
    local: KeyedLimiter<(String, Option<String>, Rate)>,
    /// Set in a cluster, where the limits hold for all hosts together.
    of_cluster: OnceLock<LeasedRates>,
}

/// The refusal of a call that exceeds a limit.
#[derive(Debug)]
pub(super) struct LimitRefusal {
    pub(super) failure: Failure,
    /// The place of the exceeded limit in a policy file.
    pub(super) place: SourceLocation,
}

/// The quota of an execution that a call would exceed. The error text of each variant completes the sentence "one
/// execution may have …".
#[derive(Debug, thiserror::Error)]
enum ExceededLimit {
    #[error("{most} calls")]
    Calls { most: u32 },
    #[error("{most} bytes of arguments, of which {before} are used and this call needs {needed}")]
    ArgumentBytes { most: u64, before: u64, needed: u64 },
    #[error("{most} bytes of results, all of which are used")]
    ResultBytes { most: u64 },
}

/// What the policy's limits prescribe for a call that does not exceed them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    /// The shortest timeout that the policy sets for the call; `None` if it sets none.
    pub(super) timeout: Option<Duration>,
}

impl Usage {
    /// Records that the execution requested information about a denied tool. Returns whether this is the first such
    /// request of the execution for the tool.
    pub(super) fn is_first_lookup(&self, server: &ServerName, tool: &ToolName) -> bool {
        let mut denied_lookups = self.denied_lookups.lock();
        denied_lookups.insert((server.clone(), tool.clone()))
    }
}

impl Limiter {
    /// Lets the rate limits hold for all hosts of a cluster together.
    pub(super) fn share(&self, rates: LeasedRates) {
        let _ = self.0.of_cluster.set(rates);
    }

    /// Counts a permitted call against the quotas and rate limits that apply to it.
    ///
    /// # Errors
    /// Fails if the call exceeds a limit; the error names the limit. If it is a rate limit, the error also says when
    /// to try again. A refused call counts against no quota. It counts against the rate limits that were checked
    /// before the exceeded rate limit.
    pub(super) fn admit(
        &self,
        usage: &Usage,
        call: &PermittedCall,
        limits: &[ScopedLimits],
    ) -> Result<Admission, Box<LimitRefusal>> {
        if limits.is_empty() {
            return Ok(Admission::default());
        }
        let bytes = json_bytes(&call.everything_sent());
        let mut used = usage.used.lock();
        for scoped in limits {
            let used = used.get(&scoped.scope).copied().unwrap_or_default();
            used.check(&scoped.limits, bytes).map_err(|limit| quota_exceeded(scoped, &limit))?;
        }
        self.check_rates(limits)?;
        let scopes: BTreeSet<&String> = limits.iter().map(|scoped| &scoped.scope).collect();
        for scope in scopes {
            let used = used.entry(scope.clone()).or_default();
            used.calls = used.calls.saturating_add(1);
            used.argument_bytes = used.argument_bytes.saturating_add(bytes);
        }
        Ok(Admission { timeout: limits.iter().filter_map(|scoped| scoped.limits.timeout).min() })
    }

    /// Counts one call against each rate limit. Fails at the first limit that the call exceeds.
    fn check_rates(&self, limits: &[ScopedLimits]) -> Result<(), Box<LimitRefusal>> {
        let (now, mut seen) = (Instant::now(), HashSet::new());
        for scoped in limits {
            let Some(rate) = scoped.limits.rate else { continue };
            let counted = (scoped.scope.clone(), scoped.member.clone(), rate);
            if seen.insert(counted.clone()) {
                let reserved = match self.0.of_cluster.get() {
                    Some(rates) => rates.reserve(&format!("calls {counted:?}"), rate),
                    None => self.0.local.bucket(counted, rate, now).reserve(Duration::ZERO, now).map(drop),
                };
                reserved.map_err(|wait| rate_exceeded(scoped, rate, wait))?;
            }
        }
        Ok(())
    }

    /// Counts the bytes of a call's result against the quotas for results.
    ///
    /// # Errors
    /// Fails if the result exceeds a quota. The result must then not be passed on.
    pub(super) fn count_result(
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
                return Err(Failure::new(
                    FailureCode::ResultTooLarge,
                    format!(
                        "the call was made, and its result of {bytes} bytes is not passed on: results of {} may have {most} \
                         bytes in one execution ({}), and {before} came before; ask for less at a time",
                        scoped.scope, scoped.location
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

impl ScopeUsage {
    /// Checks that one more call, with arguments of `bytes` bytes, exceeds no quota.
    fn check(self, limits: &Limits, bytes: u64) -> Result<(), ExceededLimit> {
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

fn quota_exceeded(scoped: &ScopedLimits, limit: &ExceededLimit) -> Box<LimitRefusal> {
    let message = format!(
        "the call was not made: one execution may have {limit} of {} ({}); another execution begins anew",
        scoped.scope, scoped.location
    );
    Box::new(LimitRefusal {
        failure: Failure::new(FailureCode::RateLimited, message),
        place: scoped.location.clone(),
    })
}

fn rate_exceeded(scoped: &ScopedLimits, rate: Rate, wait: Duration) -> Box<LimitRefusal> {
    let message = format!(
        "the call was not made: the rate of {} is {rate} ({}); there is room again in {:.2} s",
        scoped.scope,
        scoped.location,
        // Rounded up, so that a retry after this time is not too early.
        (wait.as_secs_f64() * 100.0).ceil() / 100.0,
    );
    let failure = Failure { retryable: true, ..Failure::new(FailureCode::RateLimited, message) };
    Box::new(LimitRefusal { failure, place: scoped.location.clone() })
}

/// Returns the length of a call's arguments as JSON text, in bytes.
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
