//! What a policy decides, and how it says so.
#![allow(missing_docs, clippy::unwrap_used)]

use lockhouse_policies::{Decision, DenialReason, Policy, Source, explain};
use lockhouse_protocol::{ServerName, ToolName};

const TEXT: &str = r#"version = 1

[servers.github]
allow = [
    "list_*",
    "get_issue",  # one of many
    "delete_draft", "fork",
]
deny = ["delete_repo", "list_secret*"]

[servers.closed]
deny = ["x"]

[servers.open]
allow = ["*"]
"#;

fn policy() -> Policy {
    Policy::parse(Source { path: "policy.toml".to_owned(), text: TEXT.to_owned() }).unwrap()
}

fn names(call: &str) -> (ServerName, ToolName) {
    let (server, tool) = call.split_once('/').unwrap();
    (ServerName::new(server).unwrap(), ToolName::new(tool).unwrap())
}

/// The line that allows a call, or the words that deny it.
fn decide(policy: &Policy, call: &str) -> Result<String, String> {
    let (server, tool) = names(call);
    let decided = match policy.decide(&server, &tool) {
        Decision::Allow(call) => {
            assert_eq!((call.server(), call.tool()), (&server, &tool));
            Ok(call.rule().to_string())
        }
        Decision::Deny(denial) => Err(denial.to_string()),
    };
    assert_eq!(policy.permits(&server, &tool), decided.is_ok(), "{call}");
    decided
}

#[test]
fn a_call_is_allowed_by_the_line_of_its_pattern() {
    for (call, place) in [
        ("github/list_issues", "policy.toml:5"),
        ("github/list_", "policy.toml:5"),
        ("github/get_issue", "policy.toml:6"),
        ("github/delete_draft", "policy.toml:7"),
        ("github/fork", "policy.toml:7"),
        ("open/any.thing/at-all", "policy.toml:15"),
    ] {
        assert_eq!(decide(&policy(), call), Ok(place.to_owned()), "{call}");
    }
}

#[test]
fn a_call_is_denied_with_the_reason_and_its_line() {
    for (call, why) in [
        ("github/delete_repo", r#"it matches "delete_repo" in deny (policy.toml:9)"#),
        ("github/list_secrets", r#"it matches "list_secret*" in deny (policy.toml:9)"#),
        ("github/get_issues", "it is not in the allow list of [servers.github] (policy.toml:4)"),
        ("github/list", "it is not in the allow list of [servers.github] (policy.toml:4)"),
        ("github/LIST_issues", "it is not in the allow list of [servers.github] (policy.toml:4)"),
        ("closed/x", r#"it matches "x" in deny (policy.toml:12)"#),
        ("closed/y", "[servers.closed] has no allow list (policy.toml:11)"),
        ("other/list_x", "there is no [servers.other] table in policy.toml"),
        ("Github/list_x", "there is no [servers.Github] table in policy.toml"),
    ] {
        assert_eq!(decide(&policy(), call), Err(format!("the policy does not allow {call}: {why}")));
    }
}

#[test]
fn without_a_policy_everything_is_denied() {
    let (server, tool) = names("github/list_issues");
    let Decision::Deny(denial) = Policy::empty().decide(&server, &tool) else { panic!("allowed") };
    assert_eq!(denial.reason, DenialReason::NoPolicy);
    assert_eq!(denial.place, None);
    assert!(denial.hint.contains("lockhouse policy init"));
    let words = "the policy does not allow github/list_issues: there is no policy";
    assert_eq!(denial.to_string(), words);
}

#[test]
fn a_policy_names_its_servers() {
    let policy = policy();
    assert_eq!(policy.servers().map(ServerName::as_str).collect::<Vec<_>>(), ["closed", "github", "open"]);
    assert_eq!(Policy::empty().servers().count(), 0);
}

#[test]
fn a_table_may_be_written_in_any_way_toml_knows() {
    for text in [
        "version = 1\nservers = { s = { allow = [\"t\"] } }",
        "version = 1\nservers.s.allow = [\"t\"]",
        "version = 0x1\n[servers]\ns.allow = ['t']",
        "\u{feff}version = 1\r\n[servers.\"s\"]\r\nallow = [\r\n'''t'''\r\n]\r\n",
    ] {
        let source = Source { path: "p".to_owned(), text: text.to_owned() };
        assert!(decide(&Policy::parse(source).unwrap(), "s/t").is_ok(), "{text}");
    }
}

#[test]
fn an_explanation_quotes_the_line() {
    let calls = ["github/get_issue", "github/delete_repo", "github/fetch", "closed/y", "other/x"];
    let mut text = String::new();
    for call in calls {
        let (server, tool) = names(call);
        text += &explain(&policy(), &server, &tool);
        text += "=====\n";
    }
    let (server, tool) = names("github/x");
    text += &explain(&Policy::empty(), &server, &tool);
    insta::assert_snapshot!(text);
}

#[test]
fn the_examples_are_valid() {
    let mut seen = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(errors) = Policy::parse(Source { path: path.display().to_string(), text }) {
            panic!("{errors}");
        }
        seen += 1;
    }
    assert_eq!(seen, 3);
}
