//! Tests of the texts about policies that users read: explanations, differences and suggested policies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;

use lockhouse_policies::{
    Call, CallKey, CallTarget, Change, ClientName, Decision, Listing, Policy, RulePresence, Source, diff,
    explain, suggest_policy,
};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use serde_json::{Value, json};

fn policy(path: &str, text: &str) -> Policy {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    Policy::parse(source).unwrap_or_else(|errors| panic!("{errors}"))
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn call(name: &str, arguments: &Value) -> Call {
    let (server_name, tool) = name.split_once('/').unwrap();
    let tool = ToolName::new(tool).unwrap();
    Call::new(&server(server_name), &tool).with_arguments(arguments.as_object().cloned().unwrap())
}

const OWN: &str = r#"version = 1
[servers.github]
allow = ["list_*", "create_issue"]
ask = ["list_private*"]
deny = ["delete_*"]

[[servers.github.rules]]
tool = "create_issue"
when = { owner = "acme", repo = ["app", "web"] }
effect = "allow"

[[servers.github.rules]]
tool = "create_*"
when = { owner = { pattern = "*-private" } }
effect = "deny"

[servers.github.pins]
pinned = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

[servers.files]
[[servers.files.rules]]
tool = "read"
when = { path = { under = "/srv" }, lines = { max = 10, optional = true } }
effect = "ask"
"#;

const COMPANY: &str = r#"version = 1
[servers.github]
allow = ["*"]
ask = ["create_issue"]
[clients."cur*".servers.github]
allow = ["list_*"]
"#;

#[test]
fn a_rule_can_require_a_proof_of_an_approval() {
    const RULES: &str = r#"version = 1
[servers.bank]
allow = ["*"]
[[servers.bank.rules]]
tool = "pay"
effect = "ask"
[[servers.bank.rules]]
tool = "pay"
effect = "ask"
presence = "password"
[[servers.bank.rules]]
tool = "pay"
when = { amount = { min = 100 } }
effect = "ask"
presence = "key"
[[servers.bank.rules]]
tool = "pay"
when = { amount = { max = 1 } }
effect = "ask"
"#;
    const COMPANY: &str = "version = 1\n[servers.bank]\nallow = [\"*\"]\n[[servers.bank.rules]]\ntool = \"pay\"\n\
                           effect = \"ask\"\npresence = \"password\"\n";
    let (own, company) = (policy("policy.toml", RULES), policy("company.toml", COMPANY));
    let both = own.clone().restricted_by(company.clone());
    let ranked = company.clone().restricted_by(own.clone());
    for (policy, tool, amount, expected) in [
        (&own, "see", json!(1), None),
        (&own, "pay", json!(50), Some(RulePresence::Password)),
        (&own, "pay", json!(100), Some(RulePresence::Key)),
        (&own, "pay", json!(1), None),
        // A condition that cannot be evaluated counts as met. Of two such rules the stricter one decides.
        (&own, "pay", json!("much"), Some(RulePresence::Key)),
        (&both, "pay", json!(1), Some(RulePresence::Password)),
        (&both, "pay", json!(100), Some(RulePresence::Key)),
        (&ranked, "pay", json!(100), Some(RulePresence::Key)),
    ] {
        let call = call(&format!("bank/{tool}"), &json!({"amount": amount}));
        let explained = explain(policy, &call);
        assert_eq!(explained.requirement.presence, expected, "{explained}");
        match policy.decide(call) {
            Decision::Ask(pending) => assert_eq!(pending.requirement().presence, expected, "{explained}"),
            decision => assert!(expected.is_none() && matches!(decision, Decision::Allow(_)), "{explained}"),
        }
    }
    let shown = explain(&own, &call("bank/pay", &json!({"amount": 100}))).to_string();
    assert!(shown.starts_with("bank.pay requires approval with a key: the rule for \"pay\""), "{shown}");
    assert_eq!(both.strongest_presence(), Some(RulePresence::Key));
    assert_eq!(company.strongest_presence(), Some(RulePresence::Password));
    assert_eq!(policy("a.toml", "version = 1\n").strongest_presence(), None);
}

#[test]
fn a_change_may_widen_unless_it_certainly_does_not() {
    let rule = |effect: &str| {
        format!("version = 1\n[servers.a]\nallow = []\n[[servers.a.rules]]\ntool = \"x\"\n{effect}\n")
    };
    let [allow, ask, password, key, deny] = [
        "effect = \"allow\"",
        "effect = \"ask\"",
        "effect = \"ask\"\npresence = \"password\"",
        "effect = \"ask\"\npresence = \"key\"",
        "effect = \"deny\"",
    ]
    .map(rule);
    let nothing = "version = 1\n[servers.a]\nallow = []\n".to_owned();
    let order = [&allow, &ask, &password, &key, &deny];
    let widens = |old: &str, new: &str| {
        let changes = diff(&policy("old.toml", old), &policy("new.toml", new));
        changes.iter().any(Change::may_widen)
    };
    for (strictness, old) in order.iter().enumerate() {
        for (other, new) in order.iter().enumerate() {
            assert_eq!(widens(old, new), other < strictness, "{old} {new}");
        }
        assert_eq!(widens(old, &nothing), strictness > 0, "removed: {old}");
        assert_eq!(widens(&nothing, old), strictness < 4, "added: {old}");
    }
    let [list, limit, looser] = [
        "version = 1\n[servers.a]\nallow = [\"*\"]\nask = [\"x\"]\n",
        "version = 1\n[servers.a]\nallow = [\"*\"]\nask = [\"x\"]\nrate = \"1/min\"\n",
        "version = 1\n[servers.a]\nallow = [\"*\"]\n",
    ];
    assert!(widens(list, looser), "an entry that asked is removed");
    assert!(widens(limit, list), "a limit is removed");
}

#[test]
fn an_explanation_names_what_decides_and_what_else_was_considered() {
    let (own, company) = (policy("policy.toml", OWN), policy("company.toml", COMPANY));
    let both = own.clone().restricted_by(company);
    let acme = json!({"owner": "acme", "repo": "app"});
    let mut text = String::new();
    for (policy, call) in [
        (&own, call("github/create_issue", &acme)),
        (&own, call("github/create_issue", &json!({"owner": "secret value"}))),
        (&own, call("github/create_issue", &json!({"owner": 5}))),
        (&own, call("github/create_pull", &json!({"owner": "x"}))),
        (&own, call("github/list_private_x", &json!({}))),
        (&own, call("github/pinned", &json!({}))),
        (&own, call("github/pinned", &json!({})).with_definition_digest("b".repeat(64))),
        (&own, call("github/pinned", &json!({})).with_definition_digest("a".repeat(64))),
        (&own, call("files/read", &json!({"path": "/etc/passwd", "lines": 11}))),
        (&own, call("files/read", &json!({"path": "../x"}))),
        (&both, call("github/create_issue", &acme)),
        (&both, call("github/create_issue", &acme).with_client(Some(ClientName::new("cursor")))),
        (&both, call("files/read", &json!({"path": "/srv/a"}))),
    ] {
        text += &format!("{}=====\n", explain(policy, &call));
    }
    assert!(!text.contains("secret value"));
    insta::assert_snapshot!(text);
}

#[test]
fn a_denial_names_the_rule_that_would_have_permitted_it() {
    let decision =
        policy("policy.toml", OWN).decide(call("files/read", &json!({"path": "/srv/x", "lines": 11})));
    let Decision::Deny(denial) = decision else { panic!("{decision:?}") };
    assert_eq!(
        format!("{denial}\n{}", denial.hint),
        "the policy does not allow files/read: [servers.files] has no allow list (policy.toml:20)\n\
         the rule for \"read\" when `path` is under \"/srv\" and `lines` is at most 10 or absent (policy.toml:22) \
         requires approval for it, but does not apply: it requires that `lines` is at most 10 or absent, and the argument \
         has another value"
    );
}

#[test]
fn a_difference_is_one_of_meaning() {
    let old = r#"version = 1
[servers.github]
allow = ["list_*", "create_issue", "merge"]
deny = ["delete_*"]
rate = "60/min"
[[servers.github.rules]]
tool = "create_issue"
when = { owner = "acme", repo = "app" }
effect = "ask"
[servers.gone]
resources = ["file:///docs/*"]
"#;
    let new = r#"version = 1
# The same, in another order.
[servers.github]
rate = { calls = 60, per = "1 min", burst = 5 }
deny = ["delete_*", "merge"]
allow = ["create_issue", "list_*"]
on_change = "block"
calls_per_execution = 10
[servers.github.limits."list_*"]
timeout_seconds = 5
[[servers.github.rules]]
tool = "create_issue"
when = { owner = "acme", repo = "app" }
effect = "allow"
[[servers.github.rules]]
tool = "create_issue"
when = { owner = "other" }
effect = "deny"
[servers.github.pins]
merge = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
[clients.cursor.servers.github]
allow = ["list_*"]
[limits]
rate = "1000/h"
"#;
    let (old, new) = (policy("old.toml", old), policy("new.toml", new));
    assert_eq!(diff(&old, &old), []);
    let lines: Vec<_> = diff(&old, &new).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
    let back = diff(&new, &old);
    assert_eq!(back.len(), lines.len());
    assert!(
        back.iter().zip(diff(&old, &new)).all(|(back, there)| back.old == there.new && back.new == there.old)
    );
}

fn counted(uses: &[CallKey]) -> BTreeMap<CallKey, u64> {
    uses.iter().zip(1..).map(|(one, times)| (one.clone(), times)).collect()
}

#[test]
fn a_suggestion_permits_what_was_used_and_nothing_else() {
    let tool = |name: &str| CallTarget::Tool(ToolName::new(name).unwrap());
    let used = |server_name: &str, item: CallTarget, client: Option<&str>| CallKey {
        server: server(server_name),
        item,
        client: client.map(ClientName::new),
    };
    let uses = [
        used("github", tool("list_issues"), Some("cursor")),
        used("github", tool("list_issues"), Some("claude\nversion = 2")),
        used("github", tool("create_issue"), None),
        used("docs", CallTarget::Resource(ResourceUri::new("file:///a \"b\" \\c").unwrap()), None),
        used("docs", CallTarget::Resource(ResourceUri::new("file:///*").unwrap()), None),
        used("docs", CallTarget::Prompt(PromptName::new("Räum auf").unwrap()), Some("cursor")),
        used("listed", CallTarget::List(Listing::Resources), None),
    ];
    let text = suggest_policy(&counted(&uses));
    insta::assert_snapshot!(text);
    let suggested = policy("suggested.toml", &text);
    for CallKey { server, item, client } in &uses {
        let permits = suggested.permits_target(server, item, client.as_ref());
        assert_eq!(permits, !item.as_str().contains('*'), "{item}");
    }
    for (server_name, name) in
        [("github", "list_issue"), ("github", "list_issues2"), ("docs", "x"), ("other", "x")]
    {
        assert!(!suggested.permits_target(&server(server_name), &tool(name), None), "{server_name}/{name}");
    }
    policy("nothing.toml", &suggest_policy(&BTreeMap::new()));
}

#[test]
fn a_suggestion_stays_within_the_bounds_of_a_policy() {
    let one = |n: u32| CallKey {
        server: server("s"),
        item: CallTarget::Resource(ResourceUri::new(format!("x:{n:0>200}")).unwrap()),
        client: None,
    };
    let text = suggest_policy(&counted(&(0..12_000).map(one).collect::<Vec<_>>()));
    assert!(text.contains("more targets of recorded calls do not fit"));
    policy("suggested.toml", &text);
}
