//! Searching for tools: permitted ones alone, and no server takes all the room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_catalog::{Catalogue, Corpus, Hit, Told, rank};
use lockhouse_policies::ClientName;
use lockhouse_protocol::{Detail, SEARCH_LIMIT_MAX, ServerName};
use lockhouse_upstream::State;
use serde_json::Value;

use super::Gate;
use super::failures::cut;
use super::scope::Scope;

/// How long searches wait for a server that connects for the first time, from the beginning of that attempt.
const PATIENCE: Duration = Duration::from_secs(5);
/// What fits less than this part of what the best does makes no room for itself beside a large server.
const WORTH_ROOM: f32 = 0.35;
/// Restricts a search to one server, anywhere in the query.
const SERVER_MARK: &str = "server:";

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub query: &'a str,
    /// Above [`SEARCH_LIMIT_MAX`] it is that.
    pub limit: u32,
    pub detail: Detail,
    /// Of the signatures. None: each has both.
    pub language: Option<Language>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Best first.
    pub tools: Vec<Value>,
    /// Tools that fit about as well and found no room, by server.
    pub left_out: BTreeMap<String, usize>,
    /// Servers that were not searched, because nothing is known of their tools yet; each with its reason.
    pub missing: Vec<String>,
}

/// The tools of one server that may be found.
struct Permitted {
    server: ServerName,
    catalogue: Arc<Catalogue>,
    tools: Vec<u16>,
}

impl Gate {
    /// Permitted tools that match, best first, of servers that are connected or become so in time.
    pub async fn search(&self, scope: &Scope, client: Option<&ClientName>, search: Search<'_>) -> Found {
        let (only, query) = restricted(search.query);
        let wanted = |name: &&ServerName| only.as_deref().is_none_or(|only| only == name.as_str());
        let servers = scope.servers().iter().filter(wanted);
        let connections = servers.filter_map(|name| Some((name, self.upstreams.get(name)?)));
        let catalogues = futures_util::future::join_all(connections.map(async |(name, connection)| {
            let patience = connection.patience_left(PATIENCE);
            let catalogue = tokio::time::timeout(patience, connection.catalogue()).await;
            (name, connection, catalogue.ok().and_then(Result::ok))
        }));
        let (mut permitted, mut missing) = (Vec::new(), Vec::new());
        for (server, connection, catalogue) in catalogues.await {
            let Some(catalogue) = catalogue else {
                missing.push(not_searched(server, connection.state()));
                continue;
            };
            let tools = self.places(server, &catalogue, client, scope);
            permitted.push(Permitted { server: server.clone(), catalogue, tools });
            tokio::task::yield_now().await;
        }
        permitted.sort_by(|one, other| one.server.cmp(&other.server));
        let permitted = Arc::new(permitted);
        // Off the thread that all else runs on: indices are made here, and a query may be made to cost.
        let searched = permitted.clone();
        let ranked = tokio::task::spawn_blocking(move || {
            let corpus = |of: &'_ Permitted| (of.server.clone(), of.catalogue.clone());
            let of: Vec<_> = searched.iter().map(corpus).collect();
            let corpora: Vec<Corpus<'_>> = of
                .iter()
                .zip(searched.iter())
                .map(|((server, catalogue), permitted)| Corpus {
                    server: server.as_str(),
                    index: catalogue.index(),
                    permitted: &permitted.tools,
                })
                .collect();
            rank(&query, &corpora)
        });
        let ranked = ranked.await.unwrap_or_default();
        let (shown, left_out) = fair(&ranked, search.limit.clamp(1, SEARCH_LIMIT_MAX) as usize);
        let policy = self.policy.now();
        let show = |hit: &Hit| {
            let Permitted { server, catalogue, .. } = &permitted[hit.corpus];
            let tool = &catalogue.tools[usize::from(hit.tool)];
            let asks = policy.asks(server, &tool.name, client);
            let observed =
                || self.upstreams.get(server).and_then(|connection| connection.shapes.observed(tool));
            let told = || Told { asks, observed: observed(), language: search.language };
            match search.detail {
                Detail::Names => tool.named(server.as_str(), asks),
                Detail::Signatures => tool.found(server.as_str(), &told()),
                Detail::Full => tool.full(server.as_str(), &told()),
            }
        };
        let mut counted = BTreeMap::new();
        for hit in left_out {
            *counted.entry(permitted[hit.corpus].server.to_string()).or_default() += 1;
        }
        Found { tools: shown.iter().map(show).collect(), left_out: counted, missing }
    }

    /// The places of the permitted tools in their catalogue.
    fn places(
        &self,
        server: &ServerName,
        catalogue: &Catalogue,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> Vec<u16> {
        let is_permitted = self.usable(server, client, scope);
        let tools = catalogue.tools.iter().zip(0_u16..);
        tools.filter(|(tool, _)| is_permitted(tool)).map(|(_, place)| place).collect()
    }
}

/// A server of whose tools nothing is known, and why. By now it may be there: then it was too late for this search.
fn not_searched(server: &ServerName, state: State) -> String {
    match state {
        State::Failed(reason) => format!("{server}: {}", cut(&reason)),
        State::Connected(_) | State::Connecting | State::Idle => {
            format!("{server}: still connecting, and not searched; search again later")
        }
    }
}

/// The server that a query is restricted to, and the rest of it.
fn restricted(query: &str) -> (Option<String>, String) {
    let mut only = None;
    let rest = query.split_whitespace().filter(|word| match word.strip_prefix(SERVER_MARK) {
        Some(server) if !server.is_empty() => {
            only = Some(server.to_owned());
            false
        }
        _ => true,
    });
    let rest = rest.collect::<Vec<_>>().join(" ");
    (only, rest)
}

/// The hits that are shown, in their order, and those that fit about as well and are not. No server gets more than half of
/// the room while others have something that is worth it.
fn fair(ranked: &[Hit], limit: usize) -> (Vec<Hit>, Vec<Hit>) {
    let best = ranked.iter().map(Hit::score).fold(0.0, f32::max);
    let is_worth_it = |hit: &Hit| hit.is_named() || hit.score() >= best * WORTH_ROOM;
    let share = limit.div_ceil(2);
    let mut shares: BTreeMap<usize, usize> = BTreeMap::new();
    let mut is_shown = vec![false; ranked.len()];
    let mut room = limit;
    for (shown, hit) in is_shown.iter_mut().zip(ranked) {
        let taken = shares.entry(hit.corpus).or_default();
        if room > 0 && *taken < share && is_worth_it(hit) {
            (*shown, *taken, room) = (true, *taken + 1, room - 1);
        }
    }
    for shown in is_shown.iter_mut().filter(|shown| !**shown).take(room) {
        *shown = true;
    }
    let of = |wanted: bool| {
        let chosen = ranked.iter().zip(&is_shown).filter(move |(_, shown)| **shown == wanted);
        chosen.map(|(hit, _)| *hit)
    };
    (of(true).collect(), of(false).filter(is_worth_it).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(scores: &[(usize, f32)]) -> Vec<Hit> {
        scores.iter().zip(0..).map(|((corpus, score), tool)| Hit::of(*corpus, tool, *score)).collect()
    }

    fn corpora(hits: &[Hit]) -> Vec<usize> {
        hits.iter().map(|hit| hit.corpus).collect()
    }

    #[test]
    fn a_large_server_leaves_room_for_others() {
        let ranked = hits(&[(0, 9.0), (0, 8.0), (0, 7.0), (0, 6.0), (1, 5.0), (2, 4.0), (0, 3.5)]);
        let (shown, left_out) = fair(&ranked, 4);
        assert_eq!(corpora(&shown), [0, 0, 1, 2]);
        assert_eq!(corpora(&left_out), [0, 0, 0]);
    }

    #[test]
    fn what_hardly_fits_takes_no_room_from_what_does() {
        let ranked = hits(&[(0, 9.0), (0, 8.0), (0, 7.0), (1, 1.0), (2, 0.5)]);
        assert_eq!(corpora(&fair(&ranked, 4).0), [0, 0, 0, 1]);
        assert_eq!(corpora(&fair(&ranked, 2).0), [0, 0]);
    }

    #[test]
    fn a_query_may_name_its_server() {
        assert_eq!(restricted("list  server:github issues"), (Some("github".into()), "list issues".into()));
        assert_eq!(restricted("server: x"), (None, "server: x".into()));
    }
}
