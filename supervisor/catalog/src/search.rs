//! Searches the tools of upstream servers by words or names.
//!
//! Tools are ranked by BM25F: one score over name, summary, description, parameters and server, each with its own
//! weight. Words are stemmed, and a short list of synonyms is used. A search covers the tools that the policy permits
//! the AI client, and the rarity of a word must be computed over these tools alone. Existing libraries do not fit: they
//! rank a single text (`bm25`), or have an index that does not know the policy (`probly-search`, `tantivy`). Ranking a
//! few thousand tools takes a millisecond.

mod corpus;
mod index;
mod query;
mod rank;
mod tokenizer;
mod word_lists;

pub use corpus::Corpus;
pub(crate) use index::Index;
pub use rank::Hit;
pub(crate) use tokenizer::name_words;

use query::Query;

/// Returns the tools that match the query `text`, best first. Tools of equal rank are in the order of their servers and
/// names. A query without letters and digits matches all tools.
pub fn rank(text: &str, corpora: &[Corpus<'_>]) -> Vec<Hit> {
    let every = || {
        let of = |(corpus, all): (usize, &Corpus<'_>)| {
            let hits = all.permitted.iter().map(move |tool| Hit {
                corpus,
                tool: *tool,
                named: 0,
                score: 0.0,
                topics: 0,
            });
            hits.collect::<Vec<_>>()
        };
        corpora.iter().enumerate().flat_map(of).collect::<Vec<_>>()
    };
    if !text.contains(char::is_alphanumeric) {
        return every();
    }
    let query = Query::parse(text, corpora);
    let mut hits = rank::score(&query, corpora);
    for (number, corpus) in corpora.iter().enumerate() {
        for (tool, named) in exact_matches(&query, corpus) {
            match hits.iter_mut().find(|hit| (hit.corpus, hit.tool) == (number, tool)) {
                Some(hit) => hit.named = hit.named.max(named),
                None => hits.push(Hit { corpus: number, tool, named, score: 0.0, topics: 0 }),
            }
        }
    }
    let position = |hit: &Hit| (hit.corpus, corpora[hit.corpus].index.order[usize::from(hit.tool)]);
    let is_deprecated = |hit: &Hit| corpora[hit.corpus].index.deprecated[usize::from(hit.tool)];
    hits.sort_by(|one, other| {
        let by_name = other.named.cmp(&one.named);
        let by_name = by_name.then(is_deprecated(one).cmp(&is_deprecated(other)));
        by_name.then(other.score.total_cmp(&one.score)).then(position(one).cmp(&position(other)))
    });
    hits
}

/// Returns the permitted tools of a server whose names are in the query, with or without the server's name: for each,
/// its position in the server's catalogue and the certainty of the match, from 1 (one word is the tool's name) to 4
/// (the whole query is the server's and the tool's name).
fn exact_matches(query: &Query, corpus: &Corpus<'_>) -> Vec<(u16, u8)> {
    let server = index::normalize_name(corpus.server);
    let mut found = Vec::new();
    for (position, name) in query.names.iter().enumerate() {
        let with_server = name.strip_prefix("mcp").unwrap_or(name).strip_prefix(&server);
        let with_server = with_server.or_else(|| name.strip_prefix(&server));
        for (name, certain) in [(Some(&**name), 1), (with_server, 2)] {
            let tools = name.and_then(|name| corpus.index.names.get(name)).map_or(&[][..], Vec::as_slice);
            let permitted = tools.iter().filter(|tool| corpus.permitted.binary_search(tool).is_ok());
            // A match of the whole query ranks above a match of one word.
            found.extend(permitted.map(|tool| (*tool, if position == 0 { certain + 2 } else { certain })));
        }
    }
    found
}

#[cfg(test)]
mod tests;
