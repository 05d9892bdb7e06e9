//! Fuzz target for the frames of a connection: puts generated frames together to messages, within generated limits.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_link_fuzz::frames(bytes);
});
