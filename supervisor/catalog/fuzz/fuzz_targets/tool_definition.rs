//! Fuzz target for the definitions of tools, with their schemas.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_catalog_fuzz::tool_definition(bytes);
});
