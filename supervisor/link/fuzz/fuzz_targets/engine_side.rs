//! Fuzz target for what an engine reads from a front.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_link_fuzz::engine_side(bytes);
});
