//! What a policy says of saving skills where it says nothing.
#![allow(missing_docs, clippy::unwrap_used)]

use lockhouse_policies::{Call, ClientName, Decision, Item, Policy, SKILLS, Source};
use lockhouse_protocol::{ResourceUri, ServerName, ToolName};

fn policy(text: &str) -> Policy {
    Policy::parse(Source { path: "policy.toml".into(), text: format!("version = 1\n{text}") }).unwrap()
}

fn said(policy: &Policy, server: &str, item: impl Into<Item>, client: Option<&str>) -> String {
    let client = client.map(ClientName::of);
    let call = Call::new(&ServerName::new(server).unwrap(), item).by(client);
    match policy.decide(call) {
        Decision::Allow(_) => "allow".to_owned(),
        Decision::Ask(pending) => format!("ask by {}", pending.rule()),
        Decision::Deny(_) => "deny".to_owned(),
    }
}

#[test]
fn nothing_said_asks_and_of_skills_alone() {
    let save = || Item::Tool(ToolName::new("save").unwrap());
    let built_in =
        "ask by built in: saving a skill is left to a person unless [servers.skills] says otherwise";
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
        ("below one that is silent", &allowing.clone().under(silent.clone()), None, built_in),
        ("below one that denies", &allowing.clone().under(denying.clone()), None, "deny"),
        ("a client's table without it", &of_a_client, Some("a"), "deny"),
        ("another client", &of_a_client, Some("b"), "allow"),
    ] {
        assert_eq!(said(policy, SKILLS, save(), client), expected, "{name}");
    }
    for policy in [&Policy::empty(), &silent] {
        assert_eq!(said(policy, "other", save(), None), "deny");
        assert_eq!(said(policy, SKILLS, Item::Resource(ResourceUri::new("a:b").unwrap()), None), "deny");
    }
}
