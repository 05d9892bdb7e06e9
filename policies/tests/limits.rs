//! Tests of the limits that a policy sets for a call, of the setting `on_change` per server and client, and
//! of the paths whose symbolic links must be resolved before a decision.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{
    Call, CallTarget, ClientName, Decision, Listing, OnChange, PATHS_MAX, Policy, Source,
};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Value, json};

const TEXT: &str = r#"version = 1
[limits]
calls_per_execution = 1000
[servers.github]
allow = ["*"]
resources = ["*"]
rate = "60/min"
timeout_seconds = 30
on_change = "ask"
[servers.github.limits."create_*"]
rate = { calls = 10, per = "1h", burst = 2 }
argument_bytes_per_execution = 5_000
[servers.github.limits.create_issue]
result_bytes_per_execution = 70
[servers.other]
allow = ["*"]
[clients.cursor]
rate = "5/s"
[clients.cursor.servers.github]
allow = ["*"]
timeout_seconds = 3
on_change = "block"
[clients."*"]
rate = "1/d"
"#;

const COMPANY: &str = r#"version = 1
[servers.github]
allow = ["*"]
rate = "7/h"
[limits]
rate = "2/s"
"#;

fn policy(path: &str, text: &str) -> Policy {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    Policy::parse(source).unwrap_or_else(|errors| panic!("{errors}"))
}

fn limits(policy: &Policy, server: &str, item: CallTarget, client: Option<&str>) -> Vec<String> {
    let client = client.map(ClientName::new);
    let call = Call::new(&ServerName::new(server).unwrap(), item).with_client(client.clone());
    let Decision::Allow(permitted) = policy.decide(call) else { panic!("it is not allowed") };
    let limits = policy.limits(&permitted, client.as_ref());
    limits
        .into_iter()
        .map(|scoped| {
            let limits = scoped.limits;
            let texts = [
                limits.rate.map(|rate| format!("rate {rate}")),
                limits.calls_per_execution.map(|count| format!("calls {count}")),
                limits.argument_bytes_per_execution.map(|count| format!("in {count}")),
                limits.result_bytes_per_execution.map(|count| format!("out {count}")),
                limits.timeout.map(|timeout| format!("timeout {timeout:?}")),
            ];
            let texts: Vec<_> = texts.into_iter().flatten().collect();
            format!("{}: {} ({})", scoped.scope, texts.join(", "), scoped.location)
        })
        .collect()
}

fn tool(name: &str) -> CallTarget {
    CallTarget::Tool(ToolName::new(name).unwrap())
}

#[test]
fn limits_come_from_the_narrowest_scope_to_the_widest() {
    let own = policy("policy.toml", TEXT);
    assert_eq!(
        limits(&own, "github", tool("create_issue"), Some("cursor")),
        [
            "tool github/create_issue: out 70 (policy.toml:14)",
            "tool github/create_*: rate 10/h, 2 at once, in 5000 (policy.toml:11)",
            "server github for client cursor: timeout 3s (policy.toml:21)",
            "server github: rate 60/min, timeout 30s (policy.toml:7)",
            "client cursor: rate 5/s (policy.toml:18)",
            "all calls: calls 1000 (policy.toml:3)",
        ]
    );
    assert_eq!(
        limits(&own, "github", CallTarget::List(Listing::Resources), None),
        [
            "server github: rate 60/min, timeout 30s (policy.toml:7)",
            "client *: rate 1/d (policy.toml:24)",
            "all calls: calls 1000 (policy.toml:3)",
        ]
    );
    assert_eq!(
        limits(&own, "other", tool("x"), Some("other")),
        ["client *: rate 1/d (policy.toml:24)", "all calls: calls 1000 (policy.toml:3)"]
    );
}

#[test]
fn the_limits_of_each_layer_apply_in_their_own_scope() {
    let both = policy("policy.toml", TEXT).restricted_by(policy("company.toml", COMPANY));
    assert_eq!(
        limits(&both, "github", tool("list"), Some("x")),
        [
            "server github: rate 60/min, timeout 30s (policy.toml:7)",
            "server github (company.toml): rate 7/h (company.toml:4)",
            "client *: rate 1/d (policy.toml:24)",
            "all calls: calls 1000 (policy.toml:3)",
            "all calls (company.toml): rate 2/s (company.toml:6)",
        ]
    );
    assert_eq!(both.servers().map(ServerName::as_str).collect::<Vec<_>>(), ["github"]);
}

#[test]
fn the_strictest_on_change_counts() {
    let own = policy("policy.toml", TEXT);
    let (github, other) = (ServerName::new("github").unwrap(), ServerName::new("other").unwrap());
    let cursor = ClientName::new("cursor");
    assert_eq!(own.on_change(&github, None), Some(OnChange::Ask));
    assert_eq!(own.on_change(&github, Some(&cursor)), Some(OnChange::Block));
    assert_eq!(own.on_change(&other, Some(&cursor)), None);
    let both = policy("company.toml", COMPANY).restricted_by(own);
    assert_eq!(both.on_change(&github, None), Some(OnChange::Ask));
}

#[test]
fn the_paths_to_resolve_are_those_of_rules_for_the_tool() {
    let text = r#"version = 1
[[servers.s.rules]]
tool = "read"
when = { "files.path" = { under = ["/srv/./docs/", "/data"] } }
effect = "allow"
[[servers.s.rules]]
tool = "other"
when = { path = { under = "/other" } }
effect = "allow"
"#;
    let policy = policy("p", text);
    let call = |arguments: Value| {
        let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("read").unwrap());
        Call::new(&server, &tool).with_arguments(arguments.as_object().cloned().unwrap())
    };
    let arguments = json!({"files": [{"path": "/srv/docs//a"}, {"path": "rel"}, {"path": 1}], "path": "/x"});
    assert_eq!(policy.paths_to_resolve(&call(arguments)), ["/srv/docs", "/data", "/srv/docs//a"]);
    let many: Vec<_> = (0..2 * PATHS_MAX).map(|n| json!({"path": format!("/{n}")})).collect();
    assert_eq!(policy.paths_to_resolve(&call(json!({"files": many}))).len(), PATHS_MAX);
}
