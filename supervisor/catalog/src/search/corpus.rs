//! The tools that a search covers: the permitted tools of each upstream server, with the search index of the server.

use super::index::Index;
use super::tokenizer::split_name;

/// One upstream server's tools that the policy permits the AI client to use, and the server's search
/// index.
pub struct Corpus<'a> {
    pub server: &'a str,
    pub index: &'a Index,
    /// The positions of the permitted tools in the server's list of tools (catalogue), in ascending order.
    pub permitted: &'a [u16],
}

/// Returns whether a stemmed word occurs in the index of any server or in any server's name.
pub(super) fn is_indexed(word: &str, corpora: &[Corpus<'_>]) -> bool {
    let has = |corpus: &Corpus<'_>| {
        corpus.index.postings.contains_key(word)
            || split_name(corpus.server, 8).iter().any(|name| name == word)
    };
    corpora.iter().any(has)
}
