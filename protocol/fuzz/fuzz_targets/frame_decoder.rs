//! Fuzz target for the frame decoder: decodes generated streams in generated pieces. The input also selects the message
//! type and the frame limit.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_fuzz::frame_decoder(bytes);
});
