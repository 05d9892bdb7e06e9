//! Tests of the default decision about saving skills, which applies when a policy has no `[servers.skills]`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{Call, CallTarget, ClientName, Decision, Policy, SKILLS, Source};
use lockhouse_protocol::{ResourceUri, ServerName, ToolName};

fn policy(text: &str) -> Policy {
    Policy::parse(Source { path: "policy.toml".into(), text: format!("version = 1\n{text}") }).unwrap()
}

fn decide(policy: &Policy, server: &str, item: impl Into<CallTarget>, client: Option<&str>) -> String {
    let client = client.map(ClientName::new);
    let call = Call::new(&ServerName::new(server).unwrap(), item).with_client(client);
    match policy.decide(call) {
        Decision::Allow(_) => "allow".to_owned(),
        Decision::Ask(pending) => format!("ask by {}", pending.rule()),
        Decision::Deny(_) => "deny".to_owned(),
    }
}

#[test]
fn without_a_skills_table_saving_requires_approval() {
    let save = || CallTarget::Tool(ToolName::new("save").unwrap());
    let built_in = "ask by built in: saving a skill requires approval unless [servers.skills] says otherwise";
    let silent = policy("[servers.git]\nallow = [\"*\"]\n");
    let allowing = policy("[servers.skills]\nallow = [\"save\"]\n");
    let denying = policy("[servers.skills]\ndeny = [\"save\"]\n");
    let of_a_client =
        policy("[servers.skills]\nallow = [\"save\"]\n[clients.a.servers.git]\nallow = [\"*\"]\n");
    for (name, policy, client, expected) in [
        ("no policy", &Policy::empty(), None, built_in),
        ("silent", &silent, None, built_in),
        ("allowing", &allowing, None, "allow"),
        ("denying", &denying, None, "deny"),
        ("an empty table", &policy("[servers.skills]\n"), None, "deny"),
        ("below one that is silent", &allowing.clone().restricted_by(silent.clone()), None, built_in),
        ("below one that denies", &allowing.clone().restricted_by(denying.clone()), None, "deny"),
        ("a client's table without it", &of_a_client, Some("a"), "deny"),
        ("another client", &of_a_client, Some("b"), "allow"),
    ] {
        assert_eq!(decide(policy, SKILLS, save(), client), expected, "{name}");
    }
    for policy in [&Policy::empty(), &silent] {
        assert_eq!(decide(policy, "other", save(), None), "deny");
        assert_eq!(
            decide(policy, SKILLS, CallTarget::Resource(ResourceUri::new("a:b").unwrap()), None),
            "deny"
        );
    }
}
