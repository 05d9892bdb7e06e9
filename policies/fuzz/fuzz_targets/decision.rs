//! Fuzzes policy decisions: calls with any arguments, for rules with a condition of each kind.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_policies_fuzz::decision(bytes);
});
