//! Fuzz target for the policy parser: parses arbitrary bytes as the text of a policy document.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_policies_fuzz::policy_document(bytes);
});
