//! Tests of `lockhouse policy diff`, which shows how the decisions of two policies differ.

use lockhouse_tests::Lockhouse;
use serde_json::json;

const OLD_POLICY: &str = r#"version = 1
[servers.fixture]
allow = ["add", "count"]
deny = ["delete_*"]
rate = "30/min"
[servers.other]
allow = ["x"]
"#;

const NEW_POLICY: &str = r#"version = 1

# Other order, another spelling.
[servers.fixture]
deny = ["delete_*"]
rate = "60/min"
ask = ["add"]
allow = [
    "count",
]
[[servers.fixture.rules]]
tool = "echo"
when = { value = { max = 10 } }
effect = "allow"
"#;

fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/old.toml", OLD_POLICY);
    lockhouse.file("home/new.toml", NEW_POLICY);
    lockhouse
}

#[test]
fn differences_of_two_policies_are_shown_as_a_table() {
    insta::assert_snapshot!(
        "differences",
        lockhouse().run(&["policy", "diff", "old.toml", "new.toml"]).transcript()
    );
}

#[test]
fn differences_as_json_have_both_positions() {
    let rows = lockhouse().run(&["policy", "diff", "old.toml", "new.toml", "--json"]).json();
    let add = rows.as_array().unwrap().iter().find(|row| row["what"] == "tool \"add\"").unwrap();
    let said = |what, file, line| json!({"what": what, "file": file, "line": line});
    assert_eq!(
        (&add["before"], &add["after"]),
        (&said("allow", "old.toml", 3), &said("ask", "new.toml", 7)),
        "{rows}"
    );
}

/// Policies that differ only in order, comments or formatting have no differences. Without a second file, `policy diff`
/// compares with the policy in force.
#[test]
fn equivalent_policies_have_no_differences() {
    let lockhouse = lockhouse().policy(&format!(
        "# By another hand.\n{}",
        NEW_POLICY.replace("[\n    \"count\",\n]", "[\"count\"]")
    ));
    let same = lockhouse.run(&["policy", "diff", "new.toml"]);
    assert_eq!((same.status, same.stdout.as_str()), (Some(0), "the policies are equivalent\n"), "{same:?}");
    assert_eq!(lockhouse.run(&["policy", "diff", "new.toml", "--json"]).json(), json!([]));
    assert!(
        lockhouse.run(&["policy", "diff", "old.toml"]).stdout.contains("config/lockhouse/policy.toml:"),
        "control"
    );
}
