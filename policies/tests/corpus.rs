//! What the fuzzer found is kept, and met again in each run of the tests, by the same functions that the fuzzer calls.
#![allow(missing_docs, clippy::unwrap_used)]

#[allow(unreachable_pub)] // There it is a library.
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

use fuzz::Reached;

/// What all the inputs of one target come to, together.
fn replay(target: &str, meet: fn(&[u8]) -> Reached) -> Reached {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().map(|input| input.unwrap().path()).collect();
    assert!(!inputs.is_empty(), "no corpus for {target}");
    inputs.into_iter().flat_map(|input| meet(&std::fs::read(input).unwrap())).collect()
}

#[test]
fn documents() {
    let reached = replay("policy_document", fuzz::policy_document);
    assert_eq!(reached, Reached::from(["faults", "policy", "allow", "ask", "deny"].map(str::to_owned)));
}

#[test]
fn decisions() {
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
