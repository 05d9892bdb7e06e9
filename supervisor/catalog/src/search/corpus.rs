//! What a search looks through.

use super::index::Index;
use super::words::of_name;

/// The tools of one server that may be found.
pub struct Corpus<'a> {
    pub server: &'a str,
    pub index: &'a Index,
    /// In order.
    pub permitted: &'a [u16],
}

/// Whether any of them has a word.
pub(super) fn is_known(word: &str, corpora: &[Corpus<'_>]) -> bool {
    let has = |corpus: &Corpus<'_>| {
        corpus.index.postings.contains_key(word) || of_name(corpus.server, 8).iter().any(|name| name == word)
    };
    corpora.iter().any(has)
}
