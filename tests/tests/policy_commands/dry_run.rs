//! Tests `lockhouse policy dry-run`, which evaluates recorded calls under another policy.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::json;

/// A Python program whose calls have every outcome: allowed, denied by an entry of the list `deny`, and denied because
/// no entry allows them.
const PROGRAM: &str = "\
from mcp_tools import call_tool, fixture
for n in range(12): fixture.echo(n)
fixture.add(1, 2)
for tool in ('delete_everything', 'fail', 'fail'):
    try: call_tool('fixture', tool, {})
    except Exception: pass
";

const PAST_POLICY: &str =
    "version = 1\n[servers.fixture]\nallow = [\"add\", \"echo\"]\ndeny = [\"delete_*\"]\n";

const NEW_POLICY: &str = r#"version = 1
[servers.fixture]
allow = ["fail"]
ask = ["add"]
deny = ["delete_*"]
[[servers.fixture.rules]]
tool = "echo"
when = { value = { max = 9 } }
effect = "allow"
"#;

fn after_recorded_calls(config: &str) -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(PAST_POLICY).config(config);
    lockhouse.file("home/new.toml", NEW_POLICY);
    lockhouse.file("home/past.toml", PAST_POLICY);
    let answer = lockhouse.answer("python", PROGRAM);
    assert_eq!(answer["status"], "ok", "{answer}");
    lockhouse
}

#[test]
fn changed_decisions_are_shown_as_a_table() {
    let lockhouse = after_recorded_calls("");
    insta::assert_snapshot!("changes", lockhouse.run(&["policy", "dry-run", "new.toml"]).transcript());
    insta::assert_snapshot!(
        "all_calls",
        lockhouse.run(&["policy", "dry-run", "new.toml", "--all"]).transcript()
    );
}

/// Evaluating the recorded calls under the policy that was in force for them changes no decision.
#[test]
fn the_same_policy_changes_nothing() {
    let told = after_recorded_calls("").run(&["policy", "dry-run", "past.toml", "--json"]).json();
    assert_eq!(told, json!({"calls": 16, "unchanged": 16, "changed": 0, "depends": 0, "rows": []}));
}

#[test]
fn conditions_are_evaluated_if_the_log_has_values() {
    let lockhouse = after_recorded_calls("[audit]\nvalues = true\n");
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
fn since_limits_the_evaluated_calls() {
    let lockhouse = after_recorded_calls("");
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
fn without_recorded_calls_there_is_nothing_to_evaluate() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/new.toml", NEW_POLICY);
    let finished = lockhouse.run(&["policy", "dry-run", "new.toml"]);
    assert!(finished.status == Some(0) && finished.stdout.contains("no calls"), "{finished:?}");
}
