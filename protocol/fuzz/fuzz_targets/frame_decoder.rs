//! A stream of bytes in any pieces, as any message, under any limit.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::frame_decoder(bytes);
});
