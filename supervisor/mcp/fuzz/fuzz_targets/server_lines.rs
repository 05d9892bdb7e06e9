//! Fuzz target for the lines that an upstream server writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_mcp_fuzz::server_lines(bytes);
});
