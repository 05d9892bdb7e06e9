//! Fuzz functions of the policy crate: invariants of policies that must hold for every input. Each function takes
//! bytes, panics when an invariant is violated, and returns the kinds of results that the input produced. Ordinary
//! tests pass the seeds, and changes of them, to the same functions, and check that these inputs cover all kinds of
//! results.

mod seeds;

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_policies::{Call, Decision, Policy, Source, diff, explain};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Map, Value};

pub use seeds::seeds;

/// The names of the kinds of results that an input produced, such as `allow` or `deny`.
pub type Coverage = BTreeSet<String>;

/// A policy with one tool for each kind of condition. Each condition tests the argument `a` of the tool.
const POLICY: &str = r#"
version = 1
[servers.s]
[[servers.s.rules]]
tool = "under"
when = { a = { under = "/srv/docs" } }
effect = "allow"
[[servers.s.rules]]
tool = "host"
when = { a = { host = ["api.example.com", "*.example.org"] } }
effect = "allow"
[[servers.s.rules]]
tool = "pattern"
when = { a = { pattern = "rel-*-*" } }
effect = "allow"
[[servers.s.rules]]
tool = "number"
when = { a = { min = 1, max = 10 } }
effect = "allow"
[[servers.s.rules]]
tool = "value"
when = { a = ["acme", 1, true] }
effect = "allow"
[[servers.s.rules]]
tool = "nested"
when = { "a.b.c" = { is = "acme", optional = true } }
effect = "allow"
"#;
const TOOLS: [&str; 6] = ["under", "host", "pattern", "number", "value", "nested"];

fn parsed(text: &str) -> Result<Policy, String> {
    let source = Source { path: "policy.toml".to_owned(), text: text.to_owned() };
    Policy::parse(source).map_err(|errors| {
        let text = errors.render(false);
        let is_hidden = |c: char| c.is_control() && c != '\n';
        assert!(!text.is_empty() && !text.contains(is_hidden), "{text:?}");
        text
    })
}

/// Parses the bytes as a policy. Checks that the text is a valid policy or has errors that can be rendered, and that
/// a valid policy can explain its decisions.
pub fn policy_document(bytes: &[u8]) -> Coverage {
    let text = String::from_utf8_lossy(bytes);
    let Ok(policy) = parsed(&text) else { return Coverage::from(["faults".to_owned()]) };
    assert!(diff(&policy, &policy).is_empty(), "it differs from itself");
    let servers = policy.servers().cloned().chain(ServerName::new("s")).take(4);
    let mut reached = Coverage::from(["policy".to_owned()]);
    for server in servers {
        for tool in ["list_all", "t"].into_iter().filter_map(|tool| ToolName::new(tool).ok()) {
            let call = Call::new(&server, &tool);
            let explanation = explain(&policy, &call).to_string();
            assert!(!explanation.is_empty());
            let decision = policy.decide(call);
            if matches!(decision, Decision::Allow(_)) {
                assert!(policy.permits(&server, &tool, None), "what it allows is not permitted");
            }
            reached.insert(name(&decision).to_owned());
        }
    }
    reached
}

/// Decides a call of one tool of `POLICY`. If the policy allows the call, checks the argument with a second, simpler
/// implementation. The first byte of the input selects the tool. The remaining bytes are the argument's value: JSON, or
/// a text if they are not valid JSON.
pub fn decision(bytes: &[u8]) -> Coverage {
    let Some((first, rest)) = bytes.split_first() else { return Coverage::new() };
    let tool = TOOLS[usize::from(*first) % TOOLS.len()];
    let text = String::from_utf8_lossy(rest).into_owned();
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let (Ok(policy), Ok(server), Ok(name_of_tool)) =
        (parsed(POLICY), ServerName::new("s"), ToolName::new(tool))
    else {
        panic!("the policy of the target is valid");
    };
    let arguments = Map::from_iter([("a".to_owned(), value.clone())]);
    let call = Call::new(&server, &name_of_tool).with_arguments(arguments);
    let paths = policy.paths_to_resolve(&call);
    let links: BTreeMap<String, String> = paths.into_iter().map(|path| (path.clone(), path)).collect();
    let decision = policy.decide(call.with_resolved_paths(links));
    if matches!(decision, Decision::Allow(_)) {
        assert!(agrees(tool, &value), "{tool} allows {value}");
    }
    Coverage::from([format!("{tool} {}", name(&decision))])
}

/// Whether the rule of `tool` in `POLICY` may allow the value. This check accepts more values than the rule does, but
/// it is independent of the policy crate, so it can find values that the crate allows by mistake.
fn agrees(tool: &str, value: &Value) -> bool {
    match (tool, value) {
        ("nested", _) => true,
        (_, Value::Array(values)) => values.iter().all(|value| agrees(tool, value)),
        ("under", Value::String(path)) => {
            let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
            let is_below =
                path.starts_with('/') && parts.next() == Some("srv") && parts.next() == Some("docs");
            let is_suspicious = |c: char| c.is_control() || c == '\\';
            let is_escape = |after: &str| {
                let mut digits = after.chars();
                digits.next().is_some_and(|c| {
                    matches!(c, 'u' | 'U')
                        || c.is_ascii_hexdigit() && digits.next().is_some_and(|c| c.is_ascii_hexdigit())
                })
            };
            let has_escape = path.split('%').skip(1).any(is_escape);
            is_below
                && !has_escape
                && !path.contains(is_suspicious)
                && path.split('/').all(|part| part != "..")
        }
        ("host", Value::String(url)) => {
            let url = url.to_ascii_lowercase();
            url.starts_with("http") && (url.contains("example") || url.contains('%') || !url.is_ascii())
        }
        ("pattern", Value::String(text)) => text.starts_with("rel-"),
        ("number", Value::Number(number)) => {
            number.as_f64().is_some_and(|number| (1.0..=10.0).contains(&number))
        }
        ("value", value) => *value == "acme" || *value == true || value.as_f64() == Some(1.0),
        _ => false,
    }
}

fn name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(..) => "ask",
        Decision::Deny(_) => "deny",
    }
}
