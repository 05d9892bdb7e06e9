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
    assert!(refused.code == FailureCode::ResultTooLarge && refused.message.starts_with("the call was made"));
    limiter.received(&usage, &limits, 40).expect("what fits");
    let next = limiter.admit(&usage, &call(&json!({})), &limits).expect_err("nothing is left").failure;
    assert!(next.code == FailureCode::RateLimited, "{next:?}");
}

#[test]
fn the_shortest_timeout_counts() {
    let timeout = |seconds| Limits { timeout: Some(Duration::from_secs(seconds)), ..Limits::default() };
    let limits = [of("tool s/t", timeout(9)), of("server s", timeout(3)), of("client c", Limits::default())];
    let admitted = Limiter::default().admit(&Usage::default(), &call(&json!({})), &limits).expect("room");
    assert_eq!(admitted.timeout, Some(Duration::from_secs(3)));
}
