//! Replays the fuzzing corpus of the policy crate through the functions that the fuzzer calls, and checks that the
//! corpus still covers all kinds of results.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

use fuzz::Coverage;

/// Passes each input in the corpus of the fuzz target `target` to `check`, and returns the kinds of results that all
/// inputs together produced.
fn replay(target: &str, check: fn(&[u8]) -> Coverage) -> Coverage {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().map(|input| input.unwrap().path()).collect();
    assert!(!inputs.is_empty(), "no corpus for {target}");
    inputs.into_iter().flat_map(|input| check(&std::fs::read(input).unwrap())).collect()
}

#[test]
fn the_corpus_covers_all_kinds_of_documents() {
    let reached = replay("policy_document", fuzz::policy_document);
    assert_eq!(reached, Coverage::from(["faults", "policy", "allow", "ask", "deny"].map(str::to_owned)));
}

#[test]
fn the_corpus_covers_all_decisions_of_each_condition() {
    let reached = replay("decision", fuzz::decision);
    for tool in ["under", "host", "pattern", "number", "value", "nested"] {
        for decision in ["allow", "deny"] {
            assert!(
                reached.contains(&format!("{tool} {decision}")),
                "{tool} {decision} is not reached any more"
            );
        }
    }
}
