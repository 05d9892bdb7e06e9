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
    Some(Rate::new(calls, per, burst))
}

fn scoped(scope: &str, limits: Limits) -> ScopedLimits {
    ScopedLimits {
        member: None,
        scope: scope.into(),
        limits,
        location: SourceLocation { path: "policy.toml".into(), line: 7 },
    }
}

fn admitted(limiter: &Limiter, usage: &Usage, limits: &[ScopedLimits], times: usize) -> usize {
    let call = call(&json!({}));
    (0..times).filter(|_| limiter.admit(usage, &call, limits).is_ok()).count()
}

#[test]
fn a_rate_is_shared_by_all_executions_and_reports_when_to_retry() {
    let hour = Duration::from_secs(3_600);
    let limits = [scoped("server s", Limits { rate: rate(10, hour, 4), ..Limits::default() })];
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
    // A clone continues counting; another rate in the same scope has its own counter.
    assert_eq!(admitted(&limiter.clone(), &one, &limits, 3), 0);
    let looser = [scoped("server s", Limits { rate: rate(20, hour, 4), ..Limits::default() })];
    assert_eq!(admitted(&limiter, &one, &looser, 9), 4);
    // The stricter of two rates applies.
    assert_eq!(admitted(&limiter, &one, &[looser, limits].concat(), 9), 0);
}

#[test]
fn quotas_are_counted_for_each_execution() {
    let limits = [
        scoped("tool s/t", Limits { calls_per_execution: Some(5), ..Limits::default() }),
        scoped("server s", Limits { argument_bytes_per_execution: Some(40), ..Limits::default() }),
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
    let message = long.expect_err("36 bytes").failure.message;
    assert!(
        message.contains("40 bytes of arguments, of which 8 are used and this call needs 36"),
        "{message}"
    );
    // A refused call is not counted.
    assert_eq!(admitted(&limiter, &other, &limits, 9), 1);
}

#[test]
fn a_result_above_its_quota_is_not_passed_on() {
    let limits = [scoped("server s", Limits { result_bytes_per_execution: Some(100), ..Limits::default() })];
    let (limiter, usage) = (Limiter::default(), Usage::default());
    limiter.count_result(&usage, &limits, 60).expect("room");
    let refused = limiter.count_result(&usage, &limits, 41).expect_err("one too many");
    assert!(refused.code == FailureCode::ResultTooLarge && refused.message.starts_with("the call was made"));
    limiter.count_result(&usage, &limits, 40).expect("what fits");
    let next = limiter.admit(&usage, &call(&json!({})), &limits).expect_err("nothing is left").failure;
    assert!(next.code == FailureCode::RateLimited, "{next:?}");
}

#[test]
fn the_shortest_timeout_applies() {
    let timeout = |seconds| Limits { timeout: Some(Duration::from_secs(seconds)), ..Limits::default() };
    let limits = [
        scoped("tool s/t", timeout(9)),
        scoped("server s", timeout(3)),
        scoped("client c", Limits::default()),
    ];
    let admitted = Limiter::default().admit(&Usage::default(), &call(&json!({})), &limits).expect("room");
    assert_eq!(admitted.timeout, Some(Duration::from_secs(3)));
}
