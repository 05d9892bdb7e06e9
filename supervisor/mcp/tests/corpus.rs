//! Replays the fuzzing corpus through the function that the fuzzer calls, and checks that the corpus still covers all kinds of
//! results.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(unreachable_pub)] // There it is a library.
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

use fuzz::Coverage;

#[test]
fn lines_of_servers() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/server_lines");
    let inputs = std::fs::read_dir(directory).unwrap().map(|input| input.unwrap().path());
    let reached: Coverage =
        inputs.flat_map(|input| fuzz::server_lines(&std::fs::read(input).unwrap())).collect();
    let expected = [
        "result",
        "error",
        "request",
        "notification",
        "dropped",
        "violation",
        "too long without an id",
        "too long with an id",
    ];
    let missing: Vec<_> = expected.iter().filter(|kind| !reached.contains(**kind)).collect();
    assert!(missing.is_empty(), "not reached any more: {missing:?} in {reached:?}");
}
