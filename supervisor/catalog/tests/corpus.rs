//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(unreachable_pub)] // There it is a library.
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
