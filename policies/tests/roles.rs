//! Tests of `[roles]`: who has which role, what a role lets its members call, and which calls it covers.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

use lockhouse_policies::{Call, CallTarget, ClientName, Decision, Policy, RoleKind, Source};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::json;

fn parse(text: &str) -> Result<Policy, String> {
    let source = Source { path: "policy.toml".into(), text: format!("version = 1\n{text}") };
    Policy::parse(source).map_err(|faults| faults.to_string())
}

fn policy(text: &str) -> Policy {
    parse(text).expect("a policy")
}

fn person(name: &str, memberships: &[&str]) -> ClientName {
    let memberships: Vec<String> = memberships.iter().map(|text| (*text).to_owned()).collect();
    ClientName::new(name).authenticated(memberships)
}

fn call(client: Option<ClientName>, tool: &str, amount: u32) -> Call {
    let server = ServerName::new("bank").expect("a name");
    let tool = CallTarget::Tool(ToolName::new(tool).expect("a name"));
    let arguments = json!({"amount": amount}).as_object().cloned().expect("an object");
    Call::new(&server, tool).with_arguments(arguments).with_client(client)
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}

const ROLES: &str = r#"
[servers.bank]
allow = ["*"]

[roles.clerks]
members = ["desk", "user:ada", "group:clerks", "claim:realm_access.roles=clerk"]
may = ["run"]

[roles.clerks.servers.bank]
allow = ["look"]
rules = [{ tool = "pay", effect = "allow", when = { amount = { max = 100 } } },
         { tool = "pay", effect = "ask", when = { amount = { min = 101, max = 1000 } } }]

[roles.everybody]
members = ["oauth:*"]
may = ["run"]

[roles.leads]
members = ["group:leads"]
may = ["approve"]

[roles.leads.servers.bank]
allow = ["pay"]

[roles.operators]
members = ["user:root"]
may = ["policy", "audit", "operate"]
"#;

#[test]
fn what_is_proven_decides_about_roles() {
    let policy = policy(ROLES);
    let all = RoleKind::NAMES;
    let kinds = |person: &ClientName| -> Vec<&str> {
        all.iter().filter(|(_, kind)| policy.has_role(person, *kind)).map(|(name, _)| *name).collect()
    };
    for (name, memberships, expected) in [
        ("desk", &[][..], &["run"][..]),
        ("user:ada", &["group:leads"], &["run", "approve"]),
        ("user:bob", &["group:clerks"], &["run"]),
        ("user:bob", &["group:clerk"], &[]),
        ("oauth:x", &[], &["run"]),
        ("oauth:x", &["claim:realm_access.roles=clerk"], &["run"]),
        ("user:root", &[], &["policy", "audit", "operate"]),
        ("nobody", &[], &[]),
    ] {
        assert_eq!(kinds(&person(name, memberships)), expected, "{name} {memberships:?}");
    }
    // The name that a client reports itself proves nothing.
    assert_eq!(kinds(&ClientName::new("desk")), Vec::<&str>::new());
}

#[test]
fn the_first_role_that_runs_restricts_what_its_member_calls() {
    let policy = policy(ROLES);
    let clerk = || Some(person("desk", &[]));
    let claimed = || Some(person("oauth:x", &["claim:realm_access.roles=clerk"]));
    for (client, tool, amount, expected) in [
        (clerk(), "look", 0, "allow"),
        (clerk(), "pay", 100, "allow"),
        (clerk(), "pay", 101, "ask"),
        (clerk(), "pay", 1001, "deny"),
        (clerk(), "close", 0, "deny"),
        (claimed(), "close", 0, "deny"),
        (Some(person("oauth:y", &[])), "close", 0, "allow"),
        (Some(person("user:x", &["group:leads"])), "look", 0, "deny"),
        (Some(ClientName::new("desk")), "close", 0, "allow"),
        (None, "close", 0, "allow"),
    ] {
        let call = call(client.clone(), tool, amount);
        let tool_name = ToolName::new(tool).expect("a name");
        let (server, effect) = (call.server.clone(), word(&policy.decide(call)));
        assert_eq!(effect, expected, "{client:?} {tool} {amount}");
        let is_listed = policy.permits(&server, &tool_name, client.as_ref());
        assert!(is_listed || expected == "deny", "{client:?} {tool}");
    }
    let denied = policy.decide(call(Some(person("user:x", &[])), "look", 0));
    let Decision::Deny(denial) = denied else { panic!("{denied:?}") };
    assert!(denial.to_string().contains("no role permits this person to run programs"), "{denial}");
}

#[test]
fn a_role_covers_what_it_approves() {
    let policy = policy(ROLES);
    let lead = person("user:lea", &["group:leads"]);
    assert!(policy.may_approve(&lead, &call(None, "pay", 5_000)));
    assert!(!policy.may_approve(&lead, &call(None, "close", 0)));
    assert!(!policy.may_approve(&person("desk", &[]), &call(None, "pay", 0)));
    assert_eq!(policy.approving_roles(&[call(None, "pay", 0)]), [["leads"]]);
    assert_eq!(policy.approving_roles(&[call(None, "pay", 0), call(None, "close", 0)]), [[""; 0]]);
    assert_eq!(policy.roles_of(&lead), [["leads"]]);
}

#[test]
fn documents_above_give_no_role_that_the_own_one_does_not() {
    let own = policy("[roles.a]\nmembers = [\"*\"]\nmay = [\"run\", \"approve\"]\n");
    let above = policy("[roles.b]\nmembers = [\"desk\"]\nmay = [\"run\", \"operate\"]\n");
    let both = own.restricted_by(above).restricted_by(policy(""));
    let has = |name: &str, kind| both.has_role(&person(name, &[]), kind);
    assert!(has("desk", RoleKind::Run));
    assert!(!has("desk", RoleKind::Approve) && !has("desk", RoleKind::Operate) && !has("x", RoleKind::Run));
}

#[test]
fn a_requester_without_the_role_does_not_approve_their_own_calls() {
    let text = "[servers.bank]\nask = [\"*\"]\n[roles.a]\nmembers = [\"*\"]\nmay = [\"run\"]\n\
                [roles.b]\nmembers = [\"boss\"]\nmay = [\"approve\"]\n";
    for (client, expected) in
        [(Some(person("desk", &[])), true), (Some(person("boss", &[])), false), (None, false)]
    {
        let Decision::Ask(pending) = policy(text).decide(call(client.clone(), "pay", 1)) else {
            panic!("{client:?}")
        };
        assert_eq!(pending.requirement().not_requester, expected, "{client:?}");
    }
}

#[test]
fn limits_of_a_role_are_those_of_each_member_and_of_all_together() {
    let text = "[servers.bank]\nallow = [\"*\"]\n[roles.a]\nmembers = [\"*\"]\nmay = [\"run\"]\nrate = \"10/min\"\n\
                [roles.a.together]\nrate = \"100/min\"\n[roles.a.servers.bank]\nallow = [\"*\"]\ncalls_per_execution = 5\n";
    let policy = policy(text);
    let Decision::Allow(permitted) = policy.decide(call(Some(person("desk", &[])), "pay", 1)) else {
        panic!("it is allowed")
    };
    let scopes = |client: Option<&ClientName>| -> Vec<String> {
        policy.limits(&permitted, client).into_iter().map(|limits| limits.scope).collect()
    };
    assert_eq!(
        scopes(Some(&person("desk", &[]))),
        ["server bank for role a", "role a", "each member of role a"]
    );
    let of_ada = policy.limits(&permitted, Some(&person("user:ada", &[])));
    let members: Vec<Option<&str>> = of_ada.iter().map(|limits| limits.member.as_deref()).collect();
    assert_eq!(members, [None, None, Some("user:ada")]);
    assert_eq!(scopes(Some(&ClientName::new("desk"))), Vec::<String>::new(), "control: not authenticated");
}

#[test]
fn faults_of_roles_are_reported_with_their_place() {
    let faults: Vec<String> = [
        "[roles.a]\n",
        "[roles.a]\nmembers = \"desk\"\nmay = [\"run\"]\n",
        "[roles.a]\nmembers = [\"nobody:x\", \"a*b\", \"claim:team\", 7]\nmay = [\"root\"]\n",
        "[roles.\"a b\"]\nmembers = []\nmay = []\n",
        "[roles.a]\nmembers = [\"x\"]\nmay = [\"run\", \"audit\"]\nbreak_glass = true\nwho = 1\n[roles.a.servers.bank]\nallow = []\n",
    ]
    .into_iter()
    .map(|text| parse(text).expect_err(text))
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn what_an_approval_requires_is_parsed() {
    let rule = |keys: &str| {
        let text = format!("[servers.bank]\n[[servers.bank.rules]]\ntool = \"pay\"\n{keys}");
        parse(&text).map(|policy| match policy.decide(call(None, "pay", 1)) {
            Decision::Ask(pending) => pending.requirement().to_string(),
            other => word(&other).to_owned(),
        })
    };
    for (keys, expected) in [
        ("effect = \"ask\"", ""),
        ("effect = \"ask\"\napprovers = 2", "by 2 people"),
        (
            "effect = \"ask\"\npresence = \"key\"\napprovers = 3\nnot = \"requester\"\nexpires_seconds = 60",
            "with a key, by 3 people, not by the requester, within 60 s",
        ),
    ] {
        assert_eq!(rule(keys).as_deref(), Ok(expected), "{keys}");
    }
    let faults: Vec<String> = [
        "effect = \"allow\"\napprovers = 2",
        "effect = \"ask\"\napprovers = 6",
        "effect = \"ask\"\napprovers = \"two\"",
        "effect = \"ask\"\nnot = \"me\"",
        "effect = \"ask\"\nexpires_seconds = 0",
    ]
    .into_iter()
    .map(|keys| rule(keys).expect_err(keys))
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}
