//! Fuzz target for the decoding of datagrams between supervisor and zygote.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::zygote_messages(bytes);
});
