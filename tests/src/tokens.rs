//! Counts the tokens of a text, which are its cost in a model's context.

/// Counts the tokens of a text in the vocabulary o200k. The vocabulary is part of the library tiktoken-rs, so nothing
/// is downloaded.
#[must_use]
pub fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}
