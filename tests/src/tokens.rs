//! What a text costs in a model's context.

/// Tokens of the vocabulary o200k, exactly. It is part of the library: nothing is fetched.
#[must_use]
pub fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}
