//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../../tests/fuzz/replay.rs"]
mod replay;

#[test]
fn bearer_tokens() {
    let expected = [
        "accepted",
        "MalformedToken",
        "UnknownToken",
        "Scope",
        "the token has expired",
        "the token is not valid yet",
        "the token was issued in the future: compare the clocks",
        "the token has another issuer",
        "the token is for another server, according to its audience",
        "the token is signed with a key that is not one of the authorization server's",
        "the token is malformed",
        "the token is too long",
        "the signature of the token is invalid",
        "the token is not a signed JSON Web Token",
        "the token is signed with an algorithm that is not accepted here",
        "the token is not an access token, according to its typ",
        "the token requires an extension that this server does not know",
        "the subject of the token must have 1 to 56 printable ASCII characters, without spaces",
    ];
    replay::assert_reaches(&replay::replay(&fuzz::seeds()["bearer_tokens"], fuzz::bearer_tokens), &expected);
}
