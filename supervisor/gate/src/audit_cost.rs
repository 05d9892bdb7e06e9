//! Benchmark: measures the time that writing the audit records of one call takes. Run with `make bench-audit`.

use std::time::{Duration, Instant};

use lockhouse_audit::{Audit, AuditSettings, CallAuthority, CallSubject, DEFAULT_REDACTED_NAMES};
use lockhouse_policies::{Call, CallTarget, Decision, Policy, Source};
use lockhouse_protocol::{CallId, CallOutcome, ExecutionId, ServerName, ToolName};
use serde_json::json;

/// Number of calls that are measured for each of the two configurations: with and without argument values in the
/// audit log.
const CALLS: usize = 20_000;
/// Maximum median of the time that the audit records of one call may take.
const MEDIAN_MAX: Duration = Duration::from_micros(50);

fn row(name: &str, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!(
        "{name:44}  {:>7.1}  {:>7.1}  {:>7.1}  {:>6}",
        micros(at(50)),
        micros(at(95)),
        micros(at(99)),
        times.len()
    );
    at(50)
}

#[tokio::test]
#[ignore = "a measure, of a release build"]
async fn audit_records_add_little_to_a_call() {
    println!("the audit log, records of one call; times in \u{b5}s\n");
    println!("{:44}  {:>7}  {:>7}  {:>7}  {:>6}", "", "p50", "p95", "p99", "calls");
    for values in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let audit = Audit::open(AuditSettings {
            directory: directory.path().join("audit"),
            keys: directory.path().to_owned(),
            values,
            redact: DEFAULT_REDACTED_NAMES.map(str::to_owned).to_vec(),
            code: true,
            keep_days: 30,
            erasable_names: false,
            sink: None,
            forward: Vec::new(),
            forward_within: None,
        });
        let audit = audit.expect("a log");
        let text = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n".into();
        let policy = Policy::parse(Source { path: "/home/ann/.config/lockhouse/policy.toml".into(), text });
        let policy = policy.expect("a policy");
        let server = ServerName::new("fixture").expect("a name");
        let item = CallTarget::Tool(ToolName::new("create_ticket").expect("a name"));
        let arguments =
            json!({"title": "Late order 4711", "customer": 17, "urgent": true, "labels": ["late", "order"]});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let (mut before, mut after, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..CALLS {
            let call = Call::new(&server, item.clone()).with_arguments(arguments.clone());
            let Decision::Allow(permitted) = policy.decide(call) else { panic!("it is allowed") };
            let id = uuid::Uuid::now_v7();
            let (execution, call) = (ExecutionId(id.as_u128()), CallId(number as u32));
            let subject = CallSubject {
                execution,
                call,
                id,
                client: None,
                server: &server,
                item: &item,
                line: Some(3),
            };
            let started = Instant::now();
            audit.call(subject, &permitted, CallAuthority::default()).expect("a record");
            let sent = started.elapsed();
            audit.outcome(subject, CallOutcome::Ok, Duration::from_millis(3), 240).expect("a record");
            let total = started.elapsed();
            before.push(sent);
            after.push(total - sent);
            both.push(total);
        }
        let with = if values { "with values" } else { "as it is by default" };
        row(&format!("before it goes out, {with}"), &mut before);
        row(&format!("after it came back, {with}"), &mut after);
        let median = row(&format!("both, {with}"), &mut both);
        assert!(cfg!(debug_assertions) || median < MEDIAN_MAX, "{median:?} of at most {MEDIAN_MAX:?}");
    }
}
