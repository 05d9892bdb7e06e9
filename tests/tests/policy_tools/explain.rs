//! `lockhouse policy explain`.

use lockhouse_tests::{Lockhouse, Table, ensure};

#[test]
fn a_decision_is_told_with_its_line_for_each_kind_of_call() {
    let lockhouse = super::lockhouse();
    let mut table = Table::new("explanations");
    let rows: [(&[&str], &str, u64); 12] = [
        (&["fixture.add"], "allow", 4),
        (&["fixture/text"], "allow", 4),
        (&["fixture.big"], "ask", 5),
        (&["fixture.delete_everything"], "deny", 6),
        (&["fixture.fail"], "deny", 4),
        (&["fixture.echo"], "deny", 4),
        (&["fixture.echo", "--args", r#"{"value": 10}"#], "allow", 10),
        (&["fixture.echo", "--args", r#"{"value": 11}"#], "deny", 4),
        (&["fixture.add", "--client", "stranger"], "deny", 15),
        (&["fixture.count", "--client", "stranger"], "allow", 4),
        (&["fixture", "--resource", "fixture://notes/1"], "allow", 7),
        (&["fixture", "--prompt", "review"], "deny", 3),
    ];
    for (call, effect, line) in rows {
        let arguments = [&["--policy", "policy.toml", "policy", "explain"], call].concat();
        let told = lockhouse.run(&arguments);
        let json = lockhouse.run(&[&arguments[..], &["--json"]].concat()).json();
        let deciding = &json["deciding"];
        let holds = json["effect"] == effect
            && deciding["line"] == line
            && deciding["file"] == "policy.toml"
            && told.status == Some(0)
            && told.stdout.contains(&format!("policy.toml:{line}"));
        table.row(call.join(" "), ensure(holds, (told, json)));
    }
    table.finish();
}

#[test]
fn what_else_speaks_of_a_call_is_told() {
    let lockhouse = super::lockhouse();
    let call = ["--policy", "policy.toml", "policy", "explain", "fixture.echo", "--args", r#"{"value": 11}"#];
    insta::assert_snapshot!("runners_up", lockhouse.run(&call).told());
}

/// Nothing is called and nothing started: a person can ask about servers that they do not have.
#[test]
fn an_explanation_starts_no_server() {
    let lockhouse = super::lockhouse().server("broken", &["--fail-start"]);
    let finished = lockhouse.run(&["--policy", "policy.toml", "policy", "explain", "broken.add"]);
    assert!(finished.status == Some(0) && !finished.complaints().contains("broken"), "{finished:?}");
}

/// An explanation is what the gate would decide: links are followed, and a pin is compared with the definition that the
/// server had when it was last connected.
#[test]
fn what_this_machine_knows_counts() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    std::fs::create_dir_all(lockhouse.path("docs")).unwrap();
    std::os::unix::fs::symlink("/etc", lockhouse.path("docs/link")).unwrap();
    let docs = lockhouse.path("docs").canonicalize().unwrap();
    let pin = lockhouse.run(&["tools", "show", "fixture.add"]).json()["definition"].clone();
    let policy = |pin: &str| {
        format!(
            "version = 1\n[servers.fixture]\nallow = [\"add\"]\npins = {{ add = {pin:?} }}\n[[servers.fixture.rules]]\n\
             tool = \"echo\"\nwhen = {{ value = {{ under = {docs:?} }} }}\neffect = \"allow\"\n"
        )
    };
    lockhouse.file("home/policy.toml", policy(pin.as_str().unwrap()));
    lockhouse.file("home/other.toml", policy(&format!("sha256:{}", "0".repeat(64))));
    let value = |below: &str| format!("{{\"value\": {:?}}}", docs.join(below));
    let mut table = Table::new("this machine");
    for (name, policy, tool, arguments, effect) in [
        ("a path in the folder", "policy.toml", "fixture.echo", value("a.md"), "allow"),
        ("a link out of it", "policy.toml", "fixture.echo", value("link/passwd"), "deny"),
        ("the pinned definition", "policy.toml", "fixture.add", "{}".into(), "allow"),
        ("another one is pinned", "other.toml", "fixture.add", "{}".into(), "deny"),
    ] {
        let call = ["--policy", policy, "policy", "explain", tool, "--args", &arguments, "--json"];
        let told = lockhouse.run(&call);
        table.row(name, ensure(told.json()["effect"] == effect, told));
    }
    table.finish();
}
