//! The tools that one search covers: the permitted tools of each server, with the server's index.

use super::index::Index;
use super::tokenizer::split_name;

/// The permitted tools of one server, and their index.
pub struct Corpus<'a> {
    pub server: &'a str,
    pub index: &'a Index,
    /// Indexes of the permitted tools, in ascending order.
    pub permitted: &'a [u16],
}

/// Returns whether a word occurs in any tool or server name.
pub(super) fn is_indexed(word: &str, corpora: &[Corpus<'_>]) -> bool {
    let has = |corpus: &Corpus<'_>| {
        corpus.index.postings.contains_key(word)
            || split_name(corpus.server, 8).iter().any(|name| name == word)
    };
    corpora.iter().any(has)
}
