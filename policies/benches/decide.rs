//! `make bench-policy`: measures the time of one policy decision, for policies with many tools, rules and conditions.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use lockhouse_policies::{Call, Decision, Policy, Source};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Map, Value, json};

const TOOLS: usize = 1_000;
const RULES: usize = 1_000;
const ROUNDS: usize = 20;

fn main() {
    println!("one decision, microseconds; {} each\n", TOOLS * ROUNDS);
    println!("{:<60} {:>8} {:>8} {:>8}", "policy", "median", "p99", "max");
    let layered = policy(&lists()).restricted_by(policy(&rule_of_each_tool()));
    for (name, policy) in [
        ("1,000 tools in `allow`", policy(&lists())),
        ("1,000 rules, one for each of 1,000 tools", policy(&rule_of_each_tool())),
        ("1,000 rules for beginnings of names, 1,000 tools in `allow`", policy(&rule_of_each_beginning())),
        ("the first two as layers", layered),
        ("1,000 rules for the same tools, of which the last applies", policy(&rules_of_all_tools())),
    ] {
        let (median, p99, max) = measure(&policy);
        println!("{name:<60} {median:>8.2} {p99:>8.2} {max:>8.2}");
    }
}

fn policy(text: &str) -> Policy {
    let source = Source { path: "policy.toml".to_owned(), text: format!("version = 1\n[servers.s]\n{text}") };
    Policy::parse(source).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tool(number: usize) -> String {
    format!("create_something_{number:04}")
}

fn lists() -> String {
    let names: Vec<_> = (0..TOOLS).map(tool).collect();
    format!("allow = {names:?}\ndeny = [\"delete_*\"]\n")
}

fn rule(text: &mut String, pattern: &str, owner: usize) {
    let when = format!(
        "owner = [\"acme\", \"owner{owner}\"], path = {{ under = \"/srv/docs\" }}, url = {{ host = \"*.example.com\" }}"
    );
    write!(text, "[[servers.s.rules]]\ntool = \"{pattern}\"\nwhen = {{ {when} }}\neffect = \"allow\"\n")
        .unwrap();
}

fn rule_of_each_tool() -> String {
    let mut text = String::new();
    (0..RULES).for_each(|number| rule(&mut text, &tool(number), number));
    text
}

fn rule_of_each_beginning() -> String {
    let mut text = lists();
    (0..RULES).for_each(|number| rule(&mut text, &format!("{}*", &tool(number)[..21 - number % 3]), number));
    text
}

/// Returns the rules of a policy, as TOML, which all match every tool. Only the condition of the last rule is met, so
/// each rule has to be evaluated.
fn rules_of_all_tools() -> String {
    let mut text = String::new();
    for number in 0..RULES {
        let owner = if number == RULES - 1 { "acme".to_owned() } else { format!("owner{number}") };
        write!(
            text,
            "[[servers.s.rules]]\ntool = \"*\"\nwhen = {{ owner = \"{owner}\" }}\neffect = \"allow\"\n"
        )
        .unwrap();
    }
    text
}

fn arguments() -> Map<String, Value> {
    let arguments = json!({
        "owner": "acme", "repo": "app", "title": "A title", "body": "x".repeat(1_000), "labels": ["a", "b"],
        "path": "/srv/docs/some/folder/file.md", "url": "https://api.example.com/v1/items?page=2",
    });
    arguments.as_object().cloned().unwrap()
}

/// Returns the median, the 99th percentile and the maximum time of a decision of the policy, in microseconds.
fn measure(policy: &Policy) -> (f64, f64, f64) {
    let server = ServerName::new("s").unwrap();
    let mut times = Vec::with_capacity(TOOLS * ROUNDS);
    for _ in 0..ROUNDS {
        for number in 0..TOOLS {
            let mut call =
                Call::new(&server, &ToolName::new(tool(number)).unwrap()).with_arguments(arguments());
            call.resolved_paths =
                policy.paths_to_resolve(&call).into_iter().map(|path| (path.clone(), path)).collect();
            let started = Instant::now();
            let decision = black_box(policy.decide(black_box(call)));
            times.push(started.elapsed());
            assert!(matches!(decision, Decision::Allow(_)), "{decision:?}");
        }
    }
    times.sort_unstable();
    let at = |part: usize| micros(times[(times.len() - 1) * part / 100]);
    (at(50), at(99), at(100))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
