//! `lockhouse policy diff`.

use lockhouse_tests::Lockhouse;
use serde_json::json;

const OLD: &str = r#"version = 1
[servers.fixture]
allow = ["add", "count"]
deny = ["delete_*"]
rate = "30/min"
[servers.other]
allow = ["x"]
"#;

const NEW: &str = r#"version = 1

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
    lockhouse.file("home/old.toml", OLD);
    lockhouse.file("home/new.toml", NEW);
    lockhouse
}

#[test]
fn what_two_policies_say_differently_is_a_table() {
    insta::assert_snapshot!(
        "differences",
        lockhouse().run(&["policy", "diff", "old.toml", "new.toml"]).told()
    );
}

#[test]
fn programs_read_both_places() {
    let rows = lockhouse().run(&["policy", "diff", "old.toml", "new.toml", "--json"]).json();
    let add = rows.as_array().unwrap().iter().find(|row| row["what"] == "tool \"add\"").unwrap();
    let said = |what, file, line| json!({"what": what, "file": file, "line": line});
    assert_eq!(
        (&add["before"], &add["after"]),
        (&said("allow", "old.toml", 3), &said("ask", "new.toml", 7)),
        "{rows}"
    );
}

/// Order, comments and spelling do not count; and without a second file the policy in force is the newer one.
#[test]
fn the_same_said_otherwise_is_no_difference() {
    let lockhouse = lockhouse()
        .policy(&format!("# By another hand.\n{}", NEW.replace("[\n    \"count\",\n]", "[\"count\"]")));
    let same = lockhouse.run(&["policy", "diff", "new.toml"]);
    assert_eq!((same.status, same.stdout.as_str()), (Some(0), "they say the same\n"), "{same:?}");
    assert_eq!(lockhouse.run(&["policy", "diff", "new.toml", "--json"]).json(), json!([]));
    assert!(
        lockhouse.run(&["policy", "diff", "old.toml"]).stdout.contains("config/lockhouse/policy.toml:"),
        "control"
    );
}
