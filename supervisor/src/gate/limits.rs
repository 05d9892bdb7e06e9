//! How often and how much: what the policy's limits leave of a permitted call.
//!
//! Rates are counted over all executions and outlive a change of the policy; the rest is counted for each execution. A call
//! is never made to wait: what is too much is refused, with when there is room again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use lockhouse_policies::{Limits, PermittedCall, Place, Rate, ScopedLimits};
use lockhouse_protocol::{Failure, FailureCode, ServerName, ToolName};
use serde_json::{Map, Value};

use super::failure;
use super::schema::Turn;

/// Rates that are counted. A policy has no more of them than lines; above that, those of policies long gone are dropped.
const RATES_MAX: usize = 20_000;

/// What one execution has used so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {
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

/// What a call that may go out is bounded by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admitted {
    /// The shortest that applies.
    pub(super) timeout: Option<Duration>,
}

impl Usage {
    /// Whether this execution asks about a tool for the first time.
    pub(super) fn looks_first_at(&self, server: &ServerName, tool: &ToolName) -> bool {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut used = usage.used.lock().unwrap_or_else(PoisonError::into_inner);
        for scoped in limits {
            let used = used.get(&scoped.scope).copied().unwrap_or_default();
            used.has_room(&scoped.limits, bytes).map_err(|what| exhausted(scoped, &what))?;
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
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut used = usage.used.lock().unwrap_or_else(PoisonError::into_inner);
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
    /// Or what there is no room for.
    fn has_room(self, limits: &Limits, bytes: u64) -> Result<(), String> {
        if let Some(most) = limits.calls_per_execution
            && self.calls >= most
        {
            return Err(format!("{most} calls"));
        }
        if let Some(most) = limits.argument_bytes_per_execution
            && self.argument_bytes.saturating_add(bytes) > most
        {
            let before = self.argument_bytes;
            return Err(format!(
                "{most} bytes of arguments, of which {before} are used and this call needs {bytes}"
            ));
        }
        if let Some(most) = limits.result_bytes_per_execution
            && self.result_bytes >= most
        {
            return Err(format!("{most} bytes of results, all of which are used"));
        }
        Ok(())
    }
}

fn quota(rate: Rate) -> Quota {
    let one = (rate.per / rate.calls.get()).max(Duration::from_nanos(1));
    let quota = Quota::with_period(one).unwrap_or_else(|| Quota::per_second(rate.calls));
    quota.allow_burst(rate.burst)
}

fn exhausted(scoped: &ScopedLimits, what: &str) -> Box<Refused> {
    let message = format!(
        "the call was not made: one execution may have {what} of {} ({}); another execution begins anew",
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
mod tests {
    use lockhouse_policies::{Call, Decision, Policy, Source};
    use serde_json::json;

    use super::*;

    fn call(arguments: &Value) -> PermittedCall {
        let text = "version = 1\n[servers.s]\nallow = [\"*\"]\n".to_owned();
        let policy = Policy::parse(Source { path: "policy.toml".into(), text }).expect("a policy");
        let server = ServerName::new("s").expect("a name");
        let call = Call::new(&server, &ToolName::new("t").expect("a name"));
        match policy.decide(call.with_arguments(arguments.as_object().cloned().unwrap_or_default())) {
            Decision::Allow(permitted) => permitted,
            other => panic!("{other:?}"),
        }
    }

    fn rate(calls: u32, per: Duration, burst: u32) -> Option<Rate> {
        let number = |n| NonZeroU32::new(n).expect("above 0");
        Some(Rate { calls: number(calls), per, burst: number(burst) })
    }

    fn of(scope: &str, limits: Limits) -> ScopedLimits {
        ScopedLimits { scope: scope.into(), limits, place: Place { path: "policy.toml".into(), line: 7 } }
    }

    fn admitted(limiter: &Limiter, usage: &Usage, limits: &[ScopedLimits], times: usize) -> usize {
        let call = call(&json!({}));
        (0..times).filter(|_| limiter.admit(usage, &call, limits).is_ok()).count()
    }

    #[test]
    fn a_rate_is_over_all_executions_and_says_when_there_is_room() {
        let hour = Duration::from_secs(3_600);
        let limits = [of("server s", Limits { rate: rate(10, hour, 4), ..Limits::default() })];
        let limiter = Limiter::default();
        let (one, other) = (Usage::default(), Usage::default());
        assert_eq!(admitted(&limiter, &one, &limits, 3), 3);
        assert_eq!(admitted(&limiter, &other, &limits, 3), 1);
        let refused = limiter.admit(&one, &call(&json!({})), &limits).expect_err("no room").failure;
        assert!((refused.code == FailureCode::RateLimited) && refused.retryable);
        let expected = "the call was not made: the rate of server s is 10/h, 4 at once (policy.toml:7); there is room again in ";
        let wait = refused.message.strip_prefix(expected).expect("the words");
        let seconds: f64 = wait.trim_end_matches(" s").parse().expect("seconds");
        assert!((355.0..=360.0).contains(&seconds), "{seconds}");
        // Whoever takes over goes on counting, and another rate of the same name counts anew.
        assert_eq!(admitted(&limiter.clone(), &one, &limits, 3), 0);
        let looser = [of("server s", Limits { rate: rate(20, hour, 4), ..Limits::default() })];
        assert_eq!(admitted(&limiter, &one, &looser, 9), 4);
        // The stricter of two counts.
        assert_eq!(admitted(&limiter, &one, &[looser, limits].concat(), 9), 0);
    }

    #[test]
    fn what_one_execution_may_have_is_counted_for_it_alone() {
        let limits = [
            of("tool s/t", Limits { calls_per_execution: Some(5), ..Limits::default() }),
            of("server s", Limits { argument_bytes_per_execution: Some(40), ..Limits::default() }),
        ];
        let limiter = Limiter::default();
        let (one, other) = (Usage::default(), Usage::default());
        assert_eq!(admitted(&limiter, &one, &limits, 9), 5);
        assert_eq!(admitted(&limiter, &other, &limits, 4), 4);
        let refused = limiter.admit(&one, &call(&json!({})), &limits).expect_err("five calls").failure;
        assert_eq!(
            refused.message,
            "the call was not made: one execution may have 5 calls of tool s/t (policy.toml:7); another execution begins anew"
        );
        assert!(!refused.retryable);
        let long = limiter.admit(&other, &call(&json!({"a": "0123456789012345678901234567"})), &limits);
        let told = long.expect_err("36 bytes").failure.message;
        assert!(told.contains("40 bytes of arguments, of which 8 are used and this call needs 36"), "{told}");
        // What is refused is not counted.
        assert_eq!(admitted(&limiter, &other, &limits, 9), 1);
    }

    #[test]
    fn a_result_that_is_too_much_is_not_handed_on() {
        let limits = [of("server s", Limits { result_bytes_per_execution: Some(100), ..Limits::default() })];
        let (limiter, usage) = (Limiter::default(), Usage::default());
        limiter.received(&usage, &limits, 60).expect("room");
        let refused = limiter.received(&usage, &limits, 41).expect_err("one too many");
        assert!(
            refused.code == FailureCode::ResultTooLarge && refused.message.starts_with("the call was made")
        );
        limiter.received(&usage, &limits, 40).expect("what fits");
        let next = limiter.admit(&usage, &call(&json!({})), &limits).expect_err("nothing is left").failure;
        assert!(next.code == FailureCode::RateLimited, "{next:?}");
    }

    #[test]
    fn the_shortest_timeout_counts() {
        let timeout = |seconds| Limits { timeout: Some(Duration::from_secs(seconds)), ..Limits::default() };
        let limits =
            [of("tool s/t", timeout(9)), of("server s", timeout(3)), of("client c", Limits::default())];
        let admitted = Limiter::default().admit(&Usage::default(), &call(&json!({})), &limits).expect("room");
        assert_eq!(admitted.timeout, Some(Duration::from_secs(3)));
    }
}
