//! Fuzz target for the bearer tokens of AI clients.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_access_fuzz::bearer_tokens(bytes);
});
