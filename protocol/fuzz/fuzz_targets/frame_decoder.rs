//! Fuzzes the frame decoder: any stream in any pieces, for each message type and several limits.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::frame_decoder(bytes);
});
