//! Fuzzes the conversation with a worker: any sequence of messages, replies and runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::conversation(bytes);
});
