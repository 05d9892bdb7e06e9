//! `lockhouse tools`.

use lockhouse_tests::Lockhouse;
use serde_json::json;

use crate::POLICY;

#[test]
fn every_tool_is_listed_with_what_the_policy_says() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    insta::assert_snapshot!("listed_tools", lockhouse.run(&["tools", "list"]).told());
    let rows = lockhouse.run(&["tools", "list", "--json"]).json();
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["tool"] == name).unwrap().clone();
    assert_eq!((&row("add")["policy"], &row("add")["reads_only"]), (&json!("allowed"), &json!(true)));
    assert_eq!(row("fail")["policy"], "denied");
    assert_eq!(rows.as_array().unwrap().len(), 13);
}

#[test]
fn a_search_finds_permitted_tools_alone() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let found = lockhouse.run(&["tools", "search", "two", "numbers", "--json"]).json();
    assert_eq!(found[0]["tool"], "add", "{found}");
    let found = lockhouse.run(&["tools", "search", "deletes", "--json"]).json();
    assert_eq!(found, json!([]));
    assert!(lockhouse.run(&["tools", "search", "numbers"]).stdout.contains("add"));
}

#[test]
fn one_tool_is_shown_in_full() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let shown = lockhouse.run(&["tools", "show", "fixture.add"]).json();
    assert_eq!(shown["inputSchema"]["properties"]["a"]["type"], "number", "{shown}");
    assert_eq!((&shown["policy"], &shown["read_only"]), (&json!("allowed"), &json!(true)));
    for (name, words) in [("fixture.none", "tools list"), ("none.add", "tools list"), ("add", "SERVER.TOOL")]
    {
        let finished = lockhouse.run(&["tools", "show", name]);
        assert!(finished.status == Some(2) && finished.stderr.contains(words), "{finished:?}");
    }
}

#[test]
fn a_server_that_does_not_start_is_told_and_the_others_are_listed() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("broken", &["--fail-start"]);
    let finished = lockhouse.run(&["tools", "list"]);
    assert!(finished.stdout.contains("Adds two numbers"), "{finished:?}");
    assert!(finished.stderr.contains("broken") && finished.stderr.contains("told to fail"), "{finished:?}");
}

#[test]
fn without_servers_a_person_reads_what_to_do() {
    insta::assert_snapshot!("no_servers", Lockhouse::new().run(&["tools", "list"]).told());
}
