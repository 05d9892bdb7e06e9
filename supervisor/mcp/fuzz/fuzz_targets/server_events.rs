//! Fuzz target for the event streams of an upstream server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_mcp_fuzz::server_events(bytes);
});
