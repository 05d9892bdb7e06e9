//! Fuzz target for policy decisions: runs the tool calls that the fuzzer generates against a fixed policy,
//! which has one rule for each kind of argument condition.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_policies_fuzz::decision(bytes);
});
