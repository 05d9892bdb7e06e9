//! Tests of `lockhouse tools`, the command that lists, searches and shows upstream tools.

use lockhouse_tests::Lockhouse;
use serde_json::json;

use crate::policy::POLICY;

#[test]
fn every_tool_is_listed_with_its_policy_decision() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    insta::assert_snapshot!("listed_tools", lockhouse.run(&["tools", "list"]).transcript());
    let rows = lockhouse.run(&["tools", "list", "--json"]).json();
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["tool"] == name).unwrap().clone();
    assert_eq!((&row("add")["policy"], &row("add")["reads_only"]), (&json!("allow"), &json!(true)));
    assert_eq!(row("fail")["policy"], "deny");
    assert_eq!(rows.as_array().unwrap().len(), 13);
}

/// Checks that every listing of tools, by commands and in programs, marks the tools that require approval, and no
/// others.
#[test]
fn a_tool_that_requires_approval_is_marked() {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"count\"]\nask = [\"add\"]\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    let rows = lockhouse.run(&["tools", "list", "--json"]).json();
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["tool"] == name).unwrap().clone();
    assert_eq!((&row("add")["policy"], &row("count")["policy"]), (&json!("ask"), &json!("allow")));

    let words = "a person is asked before each call";
    let program = "\
from mcp_tools import describe, fixture, search_tools
asked, free = ([fixture.add.__doc__, describe('fixture', name), search_tools(name, 1)[0]] for name in ('add', 'count'))
asked[0], asked[1:], fixture.count.__doc__, free[1:]";
    let answer = lockhouse.answer("python", program);
    let [doc, asked, other_doc, free] = [0, 1, 2, 3].map(|index| answer["value"][index].clone());
    assert!(
        doc.as_str().unwrap().starts_with(&format!("add(a: float, b: float) -> unknown  # {words}\n")),
        "{answer}"
    );
    assert!(!other_doc.as_str().unwrap().contains(words), "{answer}");
    for (asked, free) in asked.as_array().unwrap().iter().zip(free.as_array().unwrap()) {
        assert_eq!((&asked["ask"], &free["ask"]), (&json!(true), &json!(null)), "{answer}");
        assert!(asked["python"].as_str().unwrap().ends_with(&format!("  # {words}")), "{asked}");
        assert!(!free.to_string().contains(words), "{free}");
    }
    let listed = lockhouse.answer(
        "typescript",
        "(await mcp.fixture.listTools()).filter((tool) => tool.ask).map((tool) => tool.typescript)",
    );
    let asked = listed["value"].as_array().unwrap();
    assert!(asked.len() == 1 && asked[0].as_str().unwrap().ends_with(&format!("  // {words}")), "{listed}");

    let told = lockhouse.run(&["server", "get", "fixture"]).stdout;
    assert!(told.contains("requires approval      1: add\n"), "{told}");
}

#[test]
fn a_search_finds_only_permitted_tools() {
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
    assert_eq!((&shown["policy"], &shown["read_only"]), (&json!("allow"), &json!(true)));
    for (name, words) in [("fixture.none", "tools list"), ("none.add", "tools list"), ("add", "SERVER.TOOL")]
    {
        let finished = lockhouse.run(&["tools", "show", name]);
        assert!(finished.status == Some(2) && finished.stderr.contains(words), "{finished:?}");
    }
}

#[test]
fn a_server_that_does_not_start_is_reported_and_the_others_are_listed() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("broken", &["--fail-start"]);
    let finished = lockhouse.run(&["tools", "list"]);
    assert!(finished.stdout.contains("Adds two numbers"), "{finished:?}");
    assert!(finished.stderr.contains("broken") && finished.stderr.contains("told to fail"), "{finished:?}");
}

#[test]
fn without_servers_the_output_explains_how_to_add_one() {
    insta::assert_snapshot!("no_servers", Lockhouse::new().run(&["tools", "list"]).transcript());
}
