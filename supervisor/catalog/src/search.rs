//! Which tools fit what is asked for.
//!
//! BM25F (one score over name, summary, description, parameters and server, each with its own worth) over the tools that
//! the policy lets the client use, with light stemming and a short list of synonyms. The libraries that were looked at
//! rank one text (`bm25`) or keep an index of their own that knows no policy (`probly-search`, `tantivy`): how rare a word
//! is must be counted over the permitted tools of each client alone, and a few thousand tools are ranked in a millisecond.

mod corpus;
mod index;
mod query;
mod rank;
mod word_lists;
mod words;

pub use corpus::Corpus;
pub(crate) use index::Index;
pub use rank::Hit;

use query::Query;

/// The tools that fit, best first; those that fit alike by server and name. An empty query finds all, in their order.
pub fn rank(text: &str, corpora: &[Corpus<'_>]) -> Vec<Hit> {
    let every = || {
        let of = |(corpus, all): (usize, &Corpus<'_>)| {
            let hits =
                all.permitted.iter().map(move |tool| Hit { corpus, tool: *tool, named: 0, score: 0.0 });
            hits.collect::<Vec<_>>()
        };
        corpora.iter().enumerate().flat_map(of).collect::<Vec<_>>()
    };
    if !text.contains(char::is_alphanumeric) {
        return every();
    }
    let query = Query::of(text, corpora);
    let mut hits = rank::score(&query, corpora);
    for (number, corpus) in corpora.iter().enumerate() {
        for (tool, named) in exact(&query, corpus) {
            match hits.iter_mut().find(|hit| (hit.corpus, hit.tool) == (number, tool)) {
                Some(hit) => hit.named = hit.named.max(named),
                None => hits.push(Hit { corpus: number, tool, named, score: 0.0 }),
            }
        }
    }
    let place = |hit: &Hit| (hit.corpus, corpora[hit.corpus].index.order[usize::from(hit.tool)]);
    hits.sort_by(|one, other| {
        let by_name = other.named.cmp(&one.named);
        by_name.then(other.score.total_cmp(&one.score)).then(place(one).cmp(&place(other)))
    });
    hits
}

/// Permitted tools that the query names: alone, or with their server in any of the ways that it is written; and how certainly.
fn exact(query: &Query, corpus: &Corpus<'_>) -> Vec<(u16, u8)> {
    let server = index::bare(corpus.server);
    let mut found = Vec::new();
    for (place, name) in query.names.iter().enumerate() {
        let with_server = name.strip_prefix("mcp").unwrap_or(name).strip_prefix(&server);
        let with_server = with_server.or_else(|| name.strip_prefix(&server));
        for (name, certain) in [(Some(&**name), 1), (with_server, 2)] {
            let tools = name.and_then(|name| corpus.index.names.get(name)).map_or(&[][..], Vec::as_slice);
            let permitted = tools.iter().filter(|tool| corpus.permitted.binary_search(tool).is_ok());
            // The whole query goes before a name within it.
            found.extend(permitted.map(|tool| (*tool, if place == 0 { certain + 2 } else { certain })));
        }
    }
    found
}

#[cfg(test)]
mod tests;
