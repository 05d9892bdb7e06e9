//! Any text as a policy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lockhouse_policies_fuzz::policy_document(bytes);
});
