//! Token counts, the cost of a text in a model's context.

/// Counts the tokens of a text in the vocabulary o200k. The vocabulary is part of the library, so nothing is
/// downloaded.
#[must_use]
pub fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}
