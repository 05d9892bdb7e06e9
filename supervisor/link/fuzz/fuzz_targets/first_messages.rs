//! Fuzz target for the first message in each direction of a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_link_fuzz::first_messages(bytes);
});
