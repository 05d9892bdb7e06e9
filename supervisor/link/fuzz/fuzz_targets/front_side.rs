//! Fuzz target for what a front reads from an engine.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_link_fuzz::front_side(bytes);
});
