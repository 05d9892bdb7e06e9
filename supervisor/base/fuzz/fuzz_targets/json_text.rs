//! Fuzz target for JSON text of upstream servers and programs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_base_fuzz::json_text(bytes);
});
