//! Fuzz target for the lists of tools of an upstream server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_mcp_fuzz::tool_list(bytes);
});
