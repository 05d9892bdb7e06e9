//! Tests of `lockhouse policy suggest`, which writes a policy for the recorded calls, and of `lockhouse policy schema`.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::json;

const PROGRAM: &str = "\
from mcp_tools import call_tool, fixture, read_resource
for n in range(3): fixture.echo(n)
fixture.add(1, 2)
read_resource('fixture', 'fixture://note')
try: call_tool('fixture', 'delete_everything', {})
except Exception: pass
";

fn after_recorded_calls() -> Lockhouse {
    let policy =
        "version = 1\n[servers.fixture]\nallow = [\"*\"]\nresources = [\"*\"]\ndeny = [\"delete_*\"]\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    let answer = lockhouse.answer("python", PROGRAM);
    assert_eq!(answer["status"], "ok", "{answer}");
    lockhouse
}

#[test]
fn the_suggestion_is_the_minimal_policy_for_the_recorded_calls() {
    let lockhouse = after_recorded_calls();
    insta::assert_snapshot!("suggestion", lockhouse.run(&["policy", "suggest", "--from-audit"]).transcript());
}

/// The suggested policy is valid, and gives each recorded call the same decision as before. It permits no other tool.
#[test]
fn a_suggestion_permits_the_recorded_calls_and_nothing_else() {
    let lockhouse = after_recorded_calls();
    let written = lockhouse.run(&["policy", "suggest", "-o", "least.toml"]);
    assert!(written.status == Some(0) && written.stdout.contains("least.toml"), "{written:?}");
    assert_eq!(lockhouse.run(&["policy", "check", "least.toml"]).status, Some(0));
    let told = lockhouse.run(&["policy", "dry-run", "least.toml", "--json"]).json();
    assert_eq!(
        (&told["changed"], &told["depends"], &told["calls"]),
        (&json!(0), &json!(0), &json!(6)),
        "{told}"
    );
    let unused =
        lockhouse.run(&["--policy", "least.toml", "policy", "explain", "fixture.count", "--json"]).json();
    assert_eq!(unused["effect"], "deny", "{unused}");
}

#[test]
fn a_file_is_replaced_only_with_force() {
    let lockhouse = after_recorded_calls();
    let path = lockhouse.file("home/mine.toml", "mine");
    let read = || std::fs::read_to_string(&path).unwrap();
    let mut table = Table::new("files");
    let refused = lockhouse.run(&["policy", "suggest", "-o", "mine.toml"]);
    let holds = refused.status == Some(2) && refused.stderr.contains("--force") && read() == "mine";
    table.row("one that exists", ensure(holds, refused));
    let replaced = lockhouse.run(&["policy", "suggest", "-o", "mine.toml", "--force"]);
    table.row("by force", ensure(replaced.status == Some(0) && read().contains("version = 1"), replaced));
    let nowhere = lockhouse.run(&["policy", "suggest", "-o", "/proc/nothing/x.toml"]);
    table.row(
        "nowhere",
        ensure(nowhere.status == Some(7) && nowhere.stderr.contains("/proc/nothing"), nowhere),
    );
    table.finish();
}

#[test]
fn without_recorded_calls_there_is_no_suggestion() {
    let finished = Lockhouse::new().run(&["policy", "suggest"]);
    assert!(finished.status == Some(7) && finished.stdout.is_empty(), "{finished:?}");
}

#[test]
fn policy_schema_prints_the_documented_schema() {
    let printed = Lockhouse::new().run(&["policy", "schema"]);
    assert_eq!(printed.stdout, include_str!("../../../docs/policy.schema.json"));
    assert!(printed.json()["properties"].is_object(), "{printed:?}");
}
