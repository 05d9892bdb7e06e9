//! Tests of `lockhouse policy explain`, which explains the policy's decision on a call.

use lockhouse_tests::{Lockhouse, Table, ensure};

#[test]
fn a_decision_is_explained_with_its_line_for_each_kind_of_call() {
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
fn overruled_entries_are_listed() {
    let lockhouse = super::lockhouse();
    let call = ["--policy", "policy.toml", "policy", "explain", "fixture.echo", "--args", r#"{"value": 11}"#];
    insta::assert_snapshot!("runners_up", lockhouse.run(&call).transcript());
}

/// `policy explain` calls no tool and starts no upstream server, so it can also explain decisions about servers that
/// are not configured or cannot start.
#[test]
fn an_explanation_starts_no_server() {
    let lockhouse = super::lockhouse().server("broken", &["--fail-start"]);
    let finished = lockhouse.run(&["--policy", "policy.toml", "policy", "explain", "broken.add"]);
    assert!(finished.status == Some(0) && !finished.errors().contains("broken"), "{finished:?}");
}

/// `policy explain` decides as Lockhouse does for a real call: it resolves symbolic links in paths, and
/// compares the tool definitions that the policy pins with those of the last connection.
#[test]
fn symbolic_links_and_pins_are_considered() {
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

#[test]
fn an_unknown_tool_or_parameter_is_reported() {
    let lockhouse = super::lockhouse();
    let notes = |call: &[&str]| {
        let arguments = [&["--policy", "policy.toml", "policy", "explain", "--json"], call].concat();
        lockhouse.run(&arguments).json()["notes"].to_string()
    };
    let mut table = Table::new("notes");
    let unknown = notes(&["fixture.add"]);
    table.row(
        "never connected",
        ensure(unknown.contains("not known yet") && unknown.contains("server test fixture"), unknown),
    );
    let tested = lockhouse.run(&["server", "test", "fixture"]);
    table.row("control: it can be connected", ensure(tested.status == Some(0), &tested));
    for (name, call, told) in [
        (
            "a tool",
            &["fixture.tetx"][..],
            "fixture had no tool `tetx` when it was last connected; did you mean `text`?",
        ),
        (
            "a parameter",
            &["fixture.echo", "--args", r#"{"valeu": 1}"#],
            "fixture.echo has no parameter `valeu`; did you mean `value`?",
        ),
        ("a server", &["fixtrue.add"], "no server fixtrue is configured; did you mean `fixture`?"),
    ] {
        let notes = notes(call);
        table.row(name, ensure(notes.contains(told), notes));
    }
    table.row(
        "control: what exists",
        ensure(notes(&["fixture.echo", "--args", r#"{"value": 1}"#]) == "[]", ""),
    );
    let shown = lockhouse.run(&["--policy", "policy.toml", "policy", "explain", "fixture.tetx"]);
    table.row("for people", ensure(shown.stdout.contains("note: fixture had no tool `tetx`"), &shown));
    table.finish();
}
