//! `lockhouse policy dry-run`: past calls under another policy.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::json;

/// Calls of every outcome: allowed, denied by a list, denied for want of a list.
const PROGRAM: &str = "\
from mcp_tools import call_tool, fixture
for n in range(12): fixture.echo(n)
fixture.add(1, 2)
for tool in ('delete_everything', 'fail', 'fail'):
    try: call_tool('fixture', tool, {})
    except Exception: pass
";

const PAST: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"echo\"]\ndeny = [\"delete_*\"]\n";

const NEW: &str = r#"version = 1
[servers.fixture]
allow = ["fail"]
ask = ["add"]
deny = ["delete_*"]
[[servers.fixture.rules]]
tool = "echo"
when = { value = { max = 9 } }
effect = "allow"
"#;

fn used(config: &str) -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(PAST).config(config);
    lockhouse.file("home/new.toml", NEW);
    lockhouse.file("home/past.toml", PAST);
    let answer = lockhouse.answer("python", PROGRAM);
    assert_eq!(answer["status"], "ok", "{answer}");
    lockhouse
}

#[test]
fn what_would_change_is_shown_as_a_table() {
    let lockhouse = used("");
    insta::assert_snapshot!("changes", lockhouse.run(&["policy", "dry-run", "new.toml"]).told());
    insta::assert_snapshot!("all_calls", lockhouse.run(&["policy", "dry-run", "new.toml", "--all"]).told());
}

/// The policy under which the calls were made decides them as they were.
#[test]
fn the_same_policy_changes_nothing() {
    let told = used("").run(&["policy", "dry-run", "past.toml", "--json"]).json();
    assert_eq!(told, json!({"calls": 16, "unchanged": 16, "changed": 0, "depends": 0, "rows": []}));
}

#[test]
fn with_values_in_the_log_conditions_are_judged() {
    let lockhouse = used("[audit]\nvalues = true\n");
    let told = lockhouse.run(&["policy", "dry-run", "new.toml", "--json", "--all"]).json();
    let rows = told["rows"].as_array().unwrap();
    let echoed = |after: &str| {
        rows.iter().find(|row| row["name"] == "echo" && row["after"] == after).map(|row| row["times"].clone())
    };
    assert_eq!(
        (echoed("allow"), echoed("deny"), &told["depends"]),
        (Some(json!(10)), Some(json!(2)), &json!(0)),
        "{told}"
    );
}

#[test]
fn only_the_time_that_is_asked_for_counts() {
    let lockhouse = used("");
    let mut table = Table::new("times");
    for (since, count) in
        [("7d", 16), ("1h", 16), ("2020-01-31", 16), ("2020-01-31T12:00:00Z", 16), ("0s", 0)]
    {
        let told = lockhouse.run(&["policy", "dry-run", "new.toml", "--json", "--since", since]).json();
        table.row(since, ensure(told["calls"] == count, told));
    }
    for wrong in ["soon", "3x", "2020-13-01", ""] {
        let finished = lockhouse.run(&["policy", "dry-run", "new.toml", "--since", wrong]);
        table.row(
            format!("{wrong:?}"),
            ensure(finished.status == Some(2) && finished.stderr.contains("7d"), finished),
        );
    }
    table.finish();
}

#[test]
fn before_anything_ran_there_is_nothing_to_decide() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/new.toml", NEW);
    let finished = lockhouse.run(&["policy", "dry-run", "new.toml"]);
    assert!(finished.status == Some(0) && finished.stdout.contains("no calls"), "{finished:?}");
}
