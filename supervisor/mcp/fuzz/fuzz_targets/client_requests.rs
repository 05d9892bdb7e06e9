//! Fuzz target for the HTTP requests of an AI client.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_mcp_fuzz::client_requests(bytes);
});
