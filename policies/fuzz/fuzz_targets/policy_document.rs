//! Fuzzes the parsing of policies: any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_policies_fuzz::policy_document(bytes);
});
