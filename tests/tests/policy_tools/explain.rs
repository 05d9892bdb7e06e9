//! `lockhouse policy explain`.

use lockhouse_tests::{Table, ensure};

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
