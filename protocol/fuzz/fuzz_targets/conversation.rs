//! Fuzz target for the conversation with a worker: performs the messages, replies and runs that the fuzzer generates.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::conversation(bytes);
});
