//! Tests of `lockhouse policy check`, which reports the errors in a policy.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

const INVALID_POLICY: &str = "version = 1\n\n[servers.fixture]\nalow = [\"add\"]\nask = [\"a+dd\"]\n";

fn broken() -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    lockhouse.file("home/broken.toml", INVALID_POLICY);
    lockhouse
}

#[test]
fn faults_are_shown_in_full_or_on_one_line_for_editors() {
    let lockhouse = broken();
    insta::assert_snapshot!("in_full", lockhouse.run(&["policy", "check", "broken.toml"]).transcript());
    let short = lockhouse.run(&["policy", "check", "broken.toml", "--format", "short"]);
    insta::assert_snapshot!("in_short", short.transcript());
    assert!(short.stdout.is_empty(), "{short:?}");
}

#[test]
fn faults_are_available_as_json() {
    let finished = broken().run(&["policy", "check", "broken.toml", "--json"]);
    let told = finished.json();
    assert_eq!(
        (finished.status, &told["valid"], &told["files"]),
        (Some(2), &json!(false), &json!(["broken.toml"]))
    );
    let places: Vec<Value> = told["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| json!([error["file"], error["line"], error["column"]]))
        .collect();
    assert_eq!(places, [json!(["broken.toml", 4, 1]), json!(["broken.toml", 5, 8])], "{told}");
    for part in ["message", "label", "help"] {
        assert!(told["errors"][0][part].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    }

    let lockhouse = super::lockhouse().server("other", &[]);
    let finished = lockhouse.run(&["policy", "check", "policy.toml", "--json"]);
    let expected = json!({
        "valid": true, "files": ["policy.toml"], "errors": [], "servers": ["fixture"], "not_in_policy": ["other"],
        "not_configured": [], "warnings": [], "tools_not_known": ["fixture"],
    });
    assert_eq!((finished.status, finished.json()), (Some(0), expected));
}

/// With a file argument, `policy check` checks that file instead of the policy in force, and changes nothing.
#[test]
fn a_file_can_be_checked_before_it_is_in_force() {
    let good = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n";
    let (in_force, broken) = (broken().policy(good), broken().policy(INVALID_POLICY));
    broken.file("home/good.toml", good);
    let missing: &[&str] = &["policy", "check", "missing.toml"];
    let mut table = Table::new("files");
    for (name, lockhouse, arguments, status) in [
        ("in force: good", &in_force, &["policy", "check"][..], 0),
        ("in force: good, another is checked", &in_force, &["policy", "check", "broken.toml"], 2),
        ("in force: broken", &broken, &["policy", "check"], 2),
        ("in force: broken, another is checked", &broken, &["policy", "check", "good.toml"], 0),
        ("with --policy", &broken, &["--policy", "good.toml", "policy", "check"], 0),
        ("none", &Lockhouse::new(), &["policy", "check"], 2),
        ("none, as JSON", &Lockhouse::new(), &["policy", "check", "--json"], 2),
        ("a file that is not there", &in_force, missing, 2),
    ] {
        let finished = lockhouse.run(arguments);
        table.row(name, equal(finished.status, Some(status)).map_err(|told| format!("{told} {finished:?}")));
    }
    let finished = in_force.run(&["policy", "check", "missing.toml", "--json"]);
    let message = finished.json()["errors"][0]["message"].to_string();
    table.row("a file that is not there, as JSON", ensure(message.contains("missing.toml"), finished));
    table.finish();
}

/// If both the configuration and the policy have errors, `policy check` reports the errors of both.
#[test]
fn faults_of_both_files_are_reported() {
    let lockhouse = broken().config("[limit]\n");
    let finished = lockhouse.run(&["policy", "check", "broken.toml", "--format", "short"]);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{finished:?}");
    assert!(
        lines[0].starts_with("broken.toml:4:1: error: ") && lines[2].contains("config.toml:1:"),
        "{finished:?}"
    );
}

#[test]
fn control_characters_of_a_file_are_escaped() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/x\u{1b}[2J.toml", "version = 1\n\"\\u001b[31mkey\" = 1\n");
    for format in ["full", "short"] {
        let finished = lockhouse.run(&["policy", "check", "x\u{1b}[2J.toml", "--format", format]);
        assert!(finished.status == Some(2) && !finished.stderr.contains('\u{1b}'), "{finished:?}");
    }
}

/// `policy check` also checks the policy that an administrator requires, and names its file in the output.
#[test]
fn required_policies_are_checked_too() {
    let lockhouse = super::lockhouse();
    let above = lockhouse.file("above.toml", "version = 1\n[servers.fixture]\nallow = [\"add\"]\n");
    lockhouse.file("requirements.toml", format!("policy = {above:?}\n"));
    let check = || {
        let mut command = lockhouse.command(&["policy", "check", "policy.toml", "--json"]);
        CommandOutput::run(command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml")), b"")
    };
    let told = check().json();
    assert_eq!((&told["valid"], &told["files"]), (&json!(true), &json!(["policy.toml", above])), "{told}");
    lockhouse.file("above.toml", "version = 1\n[servers.fixture]\nalow = [\"add\"]\n");
    let (finished, told) = (check(), check().json());
    assert_eq!((finished.status, &told["errors"][0]["file"]), (Some(2), &json!(above)), "{told}");
}

/// A policy entry for a tool that the server does not have is valid but has no effect. `policy check` warns about it
/// and suggests a similar name.
#[test]
fn names_that_a_server_does_not_have_are_warned_about() {
    const MISSPELLED: &str = r#"version = 1
[servers.fixture]
allow = ["add", "ech", "te*", "tx*"]
[[servers.fixture.rules]]
tool = "add"
when = { a = 1, bb = 2 }
effect = "ask"
[clients.other.servers.fixture]
allow = ["cuont"]
"#;
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("never", &[]);
    lockhouse.file("home/policy.toml", format!("{MISSPELLED}[servers.never]\nallow = [\"nothing\"]\n"));
    lockhouse.file("home/right.toml", "version = 1\n[servers.fixture]\nallow = [\"add\", \"te*\", \"*\"]\n");
    let check =
        |arguments: &[&str]| lockhouse.run(&[&["policy", "check", "policy.toml"], arguments].concat());
    let mut table = Table::new("names that match nothing");
    let before = check(&[]);
    let unknown = before.stdout.contains("the tools of server fixture are not known yet");
    table.row("never connected", ensure(unknown && !before.stderr.contains("warning"), &before));
    let tested = lockhouse.run(&["server", "test", "fixture"]);
    table.row("control: it can be connected", ensure(tested.status == Some(0), &tested));
    let short = check(&["--format", "short"]);
    let lines: Vec<&str> = short.stderr.lines().collect();
    let expected = [
        "policy.toml:3:17: warning: fixture has no tool `ech`: this allows nothing; did you mean `echo`?",
        "policy.toml:3:31: warning: fixture has no tool whose name begins with `tx`: this allows nothing",
        "policy.toml:6:17: warning: fixture.add has no parameter `bb`: no call has this argument",
        "policy.toml:9:10: warning: fixture has no tool `cuont`: this allows nothing; did you mean `count`?",
    ];
    let told =
        lines.len() == 4 && lines.iter().zip(expected).all(|(told, expected)| told.starts_with(expected));
    table.row("each with the nearest name", ensure(told, &short));
    table.row("a warning is no fault", equal(short.status, Some(0)));
    let full = check(&[]);
    let caret = full.stderr.contains("warning: fixture has no tool `ech`")
        && full.stderr.contains("^^^^^ this allows nothing");
    table.row("with line and caret", ensure(caret, &full));
    table.row(
        "what is not known is said",
        ensure(full.stdout.contains("server never are not known yet"), &full),
    );
    let json = check(&["--json"]).json();
    let first = &json["warnings"][0];
    let holds = json["valid"] == true
        && json["warnings"].as_array().is_some_and(|all| all.len() == 4)
        && (&first["line"], &first["column"], &first["help"])
            == (&json!(3), &json!(17), &json!("did you mean `echo`?"))
        && json["tools_not_known"] == json!(["never"]);
    table.row("as JSON", ensure(holds, &json));
    let right = lockhouse.run(&["policy", "check", "right.toml", "--json"]).json();
    table.row("control: no warning without a mistake", equal(right["warnings"].clone(), json!([])));
    table.finish();
}

/// Checks that the example policies in the documentation are valid.
#[test]
fn policies_in_the_documentation_have_no_fault() {
    let mut table = Table::new("policies in the documentation");
    for (file, text) in [
        ("README.md", include_str!("../../../README.md")),
        ("docs/policy.md", include_str!("../../../docs/policy.md")),
    ] {
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for (number, block) in blocks.enumerate() {
            let version = if block.contains("version = 1") { "" } else { "version = 1\n" };
            let lockhouse = Lockhouse::new();
            lockhouse.file("home/shown.toml", format!("{version}{block}"));
            let finished = lockhouse.run(&["policy", "check", "shown.toml"]);
            table.row(format!("{file}, the block {number}"), ensure(finished.status == Some(0), finished));
        }
    }
    table.finish();
}
