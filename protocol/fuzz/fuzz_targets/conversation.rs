//! Any sequence of messages, replies and starts against the conversation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::conversation(bytes);
});
