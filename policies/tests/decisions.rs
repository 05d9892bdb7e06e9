//! Tests of policy decisions, and of the text of denials.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{Call, CallTarget, Decision, DenialReason, Listing, Policy, Source, explain};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};

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

/// Decides the call `call`, written `SERVER/TOOL`. Returns the location of the policy line that allows it.
///
/// # Errors
/// Returns a message if the call is denied or requires approval.
fn decide(policy: &Policy, call: &str) -> Result<String, String> {
    let (server, tool) = names(call);
    let decided = match policy.decide(Call::new(&server, &tool)) {
        Decision::Allow(call) => {
            assert_eq!((call.server(), call.item()), (&server, &CallTarget::from(&tool)));
            Ok(call.rule().to_string())
        }
        Decision::Ask(pending) => Err(format!("a person decides ({})", pending.rule())),
        Decision::Deny(denial) => Err(denial.to_string()),
    };
    assert_eq!(policy.permits(&server, &tool, None), decided.is_ok(), "{call}");
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

const BESIDES_TOOLS: &str = r#"version = 1

[servers.docs]
resources = ["file:///docs/*", "note://one"]
prompts = ["review_*", "Say hello"]
deny = ["review_secret*", "file:///docs/private/*", "del*"]

[servers.open]
resources = ["*"]
prompts = ["*"]
deny = ["del*"]

[servers.tools]
allow = ["*"]
"#;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn resources_and_prompts_have_lists_of_their_own() {
    let source = Source { path: "policy.toml".to_owned(), text: BESIDES_TOOLS.to_owned() };
    let policy = Policy::parse(source).unwrap();
    let uri = |uri: &str| CallTarget::Resource(ResourceUri::new(uri).unwrap());
    let prompt = |name: &str| CallTarget::Prompt(PromptName::new(name).unwrap());
    let rows: [(&str, CallTarget, Result<&str, &str>); 20] = [
        ("docs", uri("file:///docs/a.md"), Ok("policy.toml:4")),
        ("docs", uri("note://one"), Ok("policy.toml:4")),
        (
            "docs",
            uri("note://one/more"),
            Err("it is not in the resources list of [servers.docs] (policy.toml:4)"),
        ),
        (
            "docs",
            uri("file:///docs/private/x"),
            Err(r#"it matches "file:///docs/private/*" in deny (policy.toml:6)"#),
        ),
        (
            "docs",
            uri("file:///docs/../etc"),
            Err("it is not in the resources list of [servers.docs] (policy.toml:4)"),
        ),
        (
            "docs",
            uri("file:///docs/%2E%2e/etc"),
            Err("it is not in the resources list of [servers.docs] (policy.toml:4)"),
        ),
        ("docs", prompt("review_code"), Ok("policy.toml:5")),
        ("docs", prompt("Say hello"), Ok("policy.toml:5")),
        ("docs", prompt("review_secrets"), Err(r#"it matches "review_secret*" in deny (policy.toml:6)"#)),
        ("docs", prompt("say hello"), Err("it is not in the prompts list of [servers.docs] (policy.toml:5)")),
        ("docs", CallTarget::List(Listing::Resources), Ok("policy.toml:4")),
        ("docs", CallTarget::List(Listing::Prompts), Ok("policy.toml:5")),
        ("open", uri("x:y"), Ok("policy.toml:9")),
        ("open", uri("delta:y"), Err(r#"it matches "del*" in deny (policy.toml:11)"#)),
        ("open", prompt("delete"), Err(r#"it matches "del*" in deny (policy.toml:11)"#)),
        (
            "open",
            CallTarget::Tool(ToolName::new("x").unwrap()),
            Err("[servers.open] has no allow list (policy.toml:8)"),
        ),
        ("tools", uri("x:y"), Err("[servers.tools] has no resources list (policy.toml:13)")),
        ("tools", prompt("x"), Err("[servers.tools] has no prompts list (policy.toml:13)")),
        (
            "tools",
            CallTarget::List(Listing::Resources),
            Err("[servers.tools] has no resources list (policy.toml:13)"),
        ),
        ("other", uri("x:y"), Err("there is no [servers.other] table in policy.toml")),
    ];
    for (server, item, expected) in rows {
        let server = ServerName::new(server).unwrap();
        let permits = policy.permits_target(&server, &item, None);
        match (policy.decide(Call::new(&server, item.clone())), expected) {
            (Decision::Allow(call), Ok(place)) => {
                assert_eq!((call.item(), call.rule().to_string().as_str()), (&item, place));
                assert!(permits);
            }
            (Decision::Deny(denial), Err(why)) => {
                let message = denial.to_string();
                assert!(message.ends_with(&format!(": {why}")), "{message}");
                assert!(!permits);
            }
            (decision, _) => panic!("{decision:?}"),
        }
    }
}

#[test]
fn a_denial_truncates_a_long_uri() {
    let server = ServerName::new("s").unwrap();
    let uri = ResourceUri::new(format!("file:///\u{202e}{}", "x".repeat(5_000))).unwrap();
    let Decision::Deny(denial) = Policy::empty().decide(Call::new(&server, CallTarget::Resource(uri))) else {
        panic!("allowed")
    };
    let message = denial.to_string();
    assert!(message.starts_with("the policy does not allow the resource file:///\u{fffd}xxx"), "{message}");
    assert!(message.ends_with("x… of s: there is no policy") && message.len() < 400, "{message}");
}

#[test]
fn a_resource_template_is_listed_if_it_can_produce_a_permitted_uri() {
    let source = Source { path: "policy.toml".to_owned(), text: BESIDES_TOOLS.to_owned() };
    let policy = Policy::parse(source).unwrap();
    let permits = |server: &str, beginning: &str| {
        policy.permits_any_with_prefix(&ServerName::new(server).unwrap(), beginning, None)
    };
    assert!(permits("docs", "file:///docs/") && permits("docs", "file:///") && permits("docs", "note://"));
    assert!(permits("docs", "file:///docs/public/"));
    assert!(!permits("docs", "file:///docs/private/x") && !permits("docs", "other:"));
    assert!(permits("open", "x:") && !permits("open", "delta:") && !permits("tools", "x:"));
}

#[test]
fn without_a_policy_everything_is_denied() {
    let (server, tool) = names("github/list_issues");
    let Decision::Deny(denial) = Policy::empty().decide(Call::new(&server, &tool)) else { panic!("allowed") };
    assert_eq!(denial.reason, DenialReason::NoPolicy);
    assert_eq!(denial.location, None);
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
fn a_table_may_use_any_toml_syntax() {
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
        text += &explain(&policy(), &Call::new(&server, &tool)).to_string();
        text += "=====\n";
    }
    let (server, tool) = names("github/x");
    text += &explain(&Policy::empty(), &Call::new(&server, &tool)).to_string();
    insta::assert_snapshot!(text);
}
