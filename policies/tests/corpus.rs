//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../tests/fuzz/replay.rs"]
mod replay;

use fuzz::Coverage;

/// Passes the seeds of a target to its function, and checks that they reach these kinds of results.
fn assert_reaches(target: &str, run: fn(&[u8]) -> Coverage, expected: &[&str]) {
    replay::assert_reaches(&replay::replay(&fuzz::seeds()[target], run), expected);
}

#[test]
fn the_seeds_cover_all_kinds_of_documents() {
    assert_reaches("policy_document", fuzz::policy_document, &["faults", "policy", "allow", "ask", "deny"]);
}

#[test]
fn the_seeds_cover_all_decisions_of_each_condition() {
    let tools = ["under", "host", "pattern", "number", "value", "nested"];
    let decisions = tools.map(|tool| [format!("{tool} allow"), format!("{tool} deny")]).concat();
    let decisions: Vec<_> = decisions.iter().map(String::as_str).collect();
    assert_reaches("decision", fuzz::decision, &decisions);
}
