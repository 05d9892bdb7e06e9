//! What the fuzzer found is kept, and met again in each run of the tests, by the same functions that the fuzzer calls.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

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

/// A corpus that no longer reaches these belongs to an older protocol: `fuzz/examples/seeds.rs` makes new seeds.
fn reaches(reached: &Reached, kinds: &[&str]) {
    let told = |kind: &&&str| reached.iter().any(|reached| reached.split(' ').any(|word| word == **kind));
    let missing: Vec<_> = kinds.iter().filter(|kind| !told(kind)).collect();
    assert!(missing.is_empty(), "not reached any more: {missing:?} in {reached:?}");
}

#[test]
fn frames() {
    let reached = replay("frame_decoder", fuzz::frame_decoder);
    reaches(&reached, &["Ready", "Refused", "Output", "Stdout", "Stderr", "Request", "Done"]);
    reaches(&reached, &["Call", "ListServers", "ListTools", "Describe", "Search"]);
    reaches(&reached, &["Value", "Error", "Interrupted", "CpuLimit", "MemoryLimit"]);
    reaches(&reached, &["Run", "Reply", "Ok", "Err", "Prepare", "Fork"]);
    reaches(&reached, &["Prepared", "Forked", "Exited", "Status", "Signal", "ForkFailed"]);
    reaches(&reached, &["TooLarge", "Malformed"]);
}

#[test]
fn zygote_messages() {
    let reached = replay("zygote_messages", fuzz::zygote_messages);
    reaches(&reached, &["Prepare", "Fork", "Prepared", "Refused", "Forked", "Exited", "Status", "Signal"]);
    reaches(&reached, &["ForkFailed", "TooLarge", "Malformed"]);
}

#[test]
fn conversations() {
    let reached = replay("conversation", fuzz::conversation);
    reaches(&reached, &["Verify", "GiveUp", "Append", "Answer", "Finish", "Rest", "Stop"]);
    reaches(&reached, &["Output", "Calls", "Lookups"]);
    reaches(&reached, &["OutOfPhase", "ReusedCallId", "TooManyUnderWay"]);
}
