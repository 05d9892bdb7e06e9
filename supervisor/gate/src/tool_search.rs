//! Searches the permitted tools of all upstream servers. One server cannot fill the results while others have
//! relevant tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_catalog::{Catalogue, Corpus, Hit, rank};
use lockhouse_policies::ClientName;
use lockhouse_protocol::{Language, SEARCH_LIMIT_MAX, SearchDetail, ServerName};
use lockhouse_upstream::ConnectionState;
use serde_json::Value;

use super::Gate;
use super::failures::sanitize_message;
use super::scope::Scope;

/// Maximum number of characters of a server name in a query that an answer quotes.
const NAME_CHARS_MAX: usize = 80;

/// Maximum time that a search waits for the first connection to an upstream server, measured from the start of the
/// connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum score of a relevant tool, as a fraction of the score of the best tool. Only a relevant tool can take
/// the place of a better tool whose server has too large a share of the results.
const RELEVANCE_MIN: f32 = 0.35;
/// Prefix of the word in a query that restricts the search to one server, such as `server:github`.
const SERVER_PREFIX: &str = "server:";

/// A search for tools, as requested by an AI client or a program.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub query: &'a str,
    /// Maximum number of results; reduced to [`SEARCH_LIMIT_MAX`] if it is higher.
    pub limit: u32,
    /// How much of each tool the results contain: the name, the signature, or the whole description.
    pub detail: SearchDetail,
    /// Language of the signatures in the results; `None` for signatures in both languages.
    pub language: Option<Language>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The tools found, as JSON, best first.
    pub tools: Vec<Value>,
    /// For each server, the number of relevant tools that are missing in the results because the limit was
    /// reached. Servers without such tools are omitted.
    pub left_out: BTreeMap<String, usize>,
    /// For each server that was searched, the number of its permitted tools.
    pub available: BTreeMap<String, usize>,
    /// The servers that were not searched because their tools are not known, each with the reason.
    pub missing: Vec<String>,
}

/// The tools of one server that a search may return.
struct ServerTools {
    server: ServerName,
    catalogue: Arc<Catalogue>,
    /// The indexes, in the server's tool catalogue, of the tools that the AI client may see.
    tools: Vec<u16>,
}

/// Ranks the tools of all servers by how well they match a query, best first. Tools that do not match are omitted.
fn rank_tools(query: &str, servers: &[ServerTools]) -> Vec<Hit> {
    let corpora: Vec<Corpus<'_>> = servers
        .iter()
        .map(|tools| Corpus {
            server: tools.server.as_str(),
            index: tools.catalogue.index(),
            permitted: &tools.tools,
        })
        .collect();
    rank(query, &corpora)
}

impl Gate {
    /// Searches the permitted tools of all servers in the scope that are connected or connect in time. The results are
    /// sorted, best first.
    pub async fn search(
        &self,
        scope: &Scope,
        client: Option<&ClientName>,
        search: Search<'_>,
    ) -> SearchResult {
        let (only, query) = split_server_filter(search.query);
        let is_selected = |name: &&ServerName| only.as_deref().is_none_or(|only| only == name.as_str());
        let servers = scope.servers().iter().filter(is_selected);
        let connections = servers.filter_map(|name| Some((name, self.code_server(name)?)));
        let catalogues = futures_util::future::join_all(connections.map(async |(name, connection)| {
            let patience = connection.connect_time_left(CONNECT_TIMEOUT);
            let catalogue = tokio::time::timeout(patience, connection.catalogue()).await;
            (name, connection, catalogue.ok().and_then(Result::ok))
        }));
        let not_searchable = only.as_deref().and_then(|only| self.unsearchable_reason(scope, client, only));
        let (mut searchable, mut missing) = (Vec::new(), Vec::from_iter(not_searchable));
        for (server, connection, catalogue) in catalogues.await {
            let Some(catalogue) = catalogue else {
                missing.extend(connection.state().map(|state| unsearched_reason(server, state)));
                continue;
            };
            let tools = self.permitted_indexes(server, &catalogue, client, scope);
            searchable.push(ServerTools { server: server.clone(), catalogue, tools });
            tokio::task::yield_now().await;
        }
        searchable.sort_by(|one, other| one.server.cmp(&other.server));
        let searchable = Arc::new(searchable);
        // Runs on a blocking thread, since the search indexes are built here and a query may need much CPU time.
        let searched = searchable.clone();
        let ranked = tokio::task::spawn_blocking(move || rank_tools(&query, &searched));
        let ranked = ranked.await.unwrap_or_default();
        let (shown, left_out) = select_hits(&ranked, search.limit.clamp(1, SEARCH_LIMIT_MAX) as usize);
        let policy = self.policy.current();
        let show = |hit: &Hit| {
            let ServerTools { server, catalogue, .. } = &searchable[hit.corpus];
            let tool = &catalogue.tools[usize::from(hit.tool)];
            let asks = policy.may_require_approval(server, &tool.name, client);
            let known =
                || self.code_server(server).map(|known| known.describe_options(tool, asks, search.language));
            let options = || known().unwrap_or_default();
            match search.detail {
                SearchDetail::Names => tool.name_entry(server.as_str(), asks),
                SearchDetail::Signatures => tool.signature_entry(server.as_str(), &options()),
                SearchDetail::Full => tool.full_entry(server.as_str(), &options()),
            }
        };
        let mut counted = BTreeMap::new();
        for hit in left_out {
            *counted.entry(searchable[hit.corpus].server.to_string()).or_default() += 1;
        }
        let available =
            searchable.iter().map(|tools| (tools.server.to_string(), tools.tools.len())).collect();
        SearchResult { tools: shown.iter().map(show).collect(), left_out: counted, available, missing }
    }

    /// Returns why a search for the tools of one server finds none: the server is outside of the scope, there is none of this
    /// name, or the policy permits none of its tools. Returns `None` if the server may have tools.
    fn unsearchable_reason(&self, scope: &Scope, client: Option<&ClientName>, only: &str) -> Option<String> {
        let Some(server) = scope.servers().iter().find(|server| server.as_str() == only) else {
            let left_out = ServerName::new(only).ok().filter(|server| scope.knows(server));
            let failure = left_out.and_then(|_| scope.out_of_scope_failure());
            let failure = failure.unwrap_or_else(|| scope.unknown_server_failure(only));
            return Some(sanitize_message(&format!(
                "{}: {}",
                only.chars().take(NAME_CHARS_MAX).collect::<String>(),
                failure.message
            )));
        };
        let catalogue = self.code_server(server)?.known_catalogue()?;
        let is_denied = !catalogue.tools.is_empty()
            && catalogue.tools.iter().all(|tool| !self.policy.current().permits(server, &tool.name, client));
        is_denied.then(|| format!("{only}: the policy permits none of its tools"))
    }

    /// Returns the indexes, in a server's tool catalogue, of the tools that this AI client may see.
    fn permitted_indexes(
        &self,
        server: &ServerName,
        catalogue: &Catalogue,
        client: Option<&ClientName>,
        scope: &Scope,
    ) -> Vec<u16> {
        let is_permitted = self.visible_tool_filter(server, client, scope);
        let tools = catalogue.tools.iter().zip(0_u16..);
        tools.filter(|(tool, _)| is_permitted(tool)).map(|(_, index)| index).collect()
    }
}

/// Returns why a server was not searched. `state` may already be `Connected`, if the server connected after the search
/// had stopped waiting.
fn unsearched_reason(server: &ServerName, state: ConnectionState) -> String {
    match state {
        ConnectionState::Failed(reason) => format!("{server}: {}", sanitize_message(&reason)),
        ConnectionState::Connected(_) | ConnectionState::Connecting | ConnectionState::Idle => {
            format!("{server}: still connecting, and not searched; search again later")
        }
    }
}

/// Splits a query into its server filter (the name after [`SERVER_PREFIX`]) and the remaining words. The filter is
/// `None` if the query names no server.
pub(super) fn split_server_filter(query: &str) -> (Option<String>, String) {
    let mut only = None;
    let rest = query.split_whitespace().filter(|word| match word.strip_prefix(SERVER_PREFIX) {
        Some(server) if !server.is_empty() => {
            only = Some(server.to_owned());
            false
        }
        _ => true,
    });
    let rest = rest.collect::<Vec<_>>().join(" ");
    (only, rest)
}

/// Selects at most `limit` of the ranked tools as results. Returns the results, and the relevant tools that are not
/// among them. No server gets more than half of the results (rounded up) while other servers have relevant tools.
fn select_hits(ranked: &[Hit], limit: usize) -> (Vec<Hit>, Vec<Hit>) {
    let best = ranked.iter().map(Hit::score).fold(0.0, f32::max);
    let is_worth_it = |hit: &Hit| hit.is_named() || hit.score() >= best * RELEVANCE_MIN;
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
    serve_every_topic(ranked, &mut is_shown);
    let of = |is_selected: bool| {
        let chosen = ranked.iter().zip(&is_shown).filter(move |(_, shown)| **shown == is_selected);
        chosen.map(|(hit, _)| *hit)
    };
    (of(true).collect(), of(false).filter(is_worth_it).collect())
}

/// Ensures that the results contain a tool for each topic (word) of the query that any tool matches. If a topic is
/// missing, the best tool for this topic replaces the last result whose topics better results also match. A query
/// such as "calendar events and invoices" thus finds tools for calendars and tools for invoices.
fn serve_every_topic(ranked: &[Hit], is_shown: &mut [bool]) {
    let all = ranked.iter().fold(0, |all, hit| all | hit.topics());
    let mut kept = vec![false; ranked.len()];
    let (mut served, mut before) = (0, None);
    for (position, hit) in ranked.iter().enumerate().filter(|(position, _)| is_shown[*position]) {
        // The best tool stays, whatever it serves.
        kept[position] = before.is_none() || hit.is_named() || hit.topics() & !served != 0;
        served |= hit.topics();
        before = Some(position);
    }
    while served != all {
        let missing = all & !served;
        let Some(found) = ranked.iter().position(|hit| hit.topics() & missing != 0) else { return };
        let Some(displaced) = (0..ranked.len()).rev().find(|at| is_shown[*at] && !kept[*at]) else { return };
        (is_shown[displaced], is_shown[found], kept[found]) = (false, true, true);
        served |= ranked[found].topics();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(scores: &[(usize, f32)]) -> Vec<Hit> {
        scores
            .iter()
            .zip(0..)
            .map(|((corpus, score), tool)| Hit::by_words(*corpus, tool, *score, 0))
            .collect()
    }

    fn corpora(hits: &[Hit]) -> Vec<usize> {
        hits.iter().map(|hit| hit.corpus).collect()
    }

    #[test]
    fn a_large_server_leaves_places_for_others() {
        let ranked = hits(&[(0, 9.0), (0, 8.0), (0, 7.0), (0, 6.0), (1, 5.0), (2, 4.0), (0, 3.5)]);
        let (shown, left_out) = select_hits(&ranked, 4);
        assert_eq!(corpora(&shown), [0, 0, 1, 2]);
        assert_eq!(corpora(&left_out), [0, 0, 0]);
    }

    #[test]
    fn irrelevant_hits_do_not_displace_relevant_ones() {
        let ranked = hits(&[(0, 9.0), (0, 8.0), (0, 7.0), (1, 1.0), (2, 0.5)]);
        assert_eq!(corpora(&select_hits(&ranked, 4).0), [0, 0, 0, 1]);
        assert_eq!(corpora(&select_hits(&ranked, 2).0), [0, 0]);
    }

    #[test]
    fn every_topic_of_a_query_is_served() {
        let hit = |tool, score, topics| Hit::by_words(0, tool, score, topics);
        let ranked =
            [hit(0, 9.0, 0b01), hit(1, 8.0, 0b01), hit(2, 7.0, 0b01), hit(3, 2.0, 0b10), hit(4, 1.0, 0b100)];
        let tools = |limit| select_hits(&ranked, limit).0.iter().map(|hit| hit.tool).collect::<Vec<_>>();
        assert_eq!(tools(3), [0, 3, 4]);
        assert_eq!(tools(2), [0, 3], "the best tool stays");
        assert_eq!(tools(1), [0]);
        assert_eq!(tools(5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_query_may_name_its_server() {
        assert_eq!(
            split_server_filter("list  server:github issues"),
            (Some("github".into()), "list issues".into())
        );
        assert_eq!(split_server_filter("server: x"), (None, "server: x".into()));
    }
}
