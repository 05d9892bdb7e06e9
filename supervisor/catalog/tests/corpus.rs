//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../../tests/fuzz/replay.rs"]
mod replay;

#[test]
fn definitions_of_tools() {
    let expected = [
        "skipped",
        "closed",
        "wraps its result",
        "declares its result",
        "hidden text",
        "deprecated",
        "may change something",
        "reads only",
        "optional parameters",
        "list",
        "int",
        "Literal",
        "str",
    ];
    replay::assert_reaches(
        &replay::replay(&fuzz::seeds()["tool_definition"], fuzz::tool_definition),
        &expected,
    );
}
