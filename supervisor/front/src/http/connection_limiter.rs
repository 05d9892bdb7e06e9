//! The connection limiter: limits how many connections are open, and chooses one to close for a new one.
//!
//! A connection is unauthenticated until one of its requests was authenticated. All unauthenticated connections
//! together may use a part of the limit; the rest is reserved for authenticated clients. When a limit is reached, a new
//! connection replaces an unauthenticated connection, or if there is none, an authenticated connection without requests
//! in flight. Among these candidates, it is a connection of the peer that has most of them: the one that was accepted
//! first if they are unauthenticated, and otherwise the one that has been idle for longest.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::connection_timeouts::{ConnectionTracker, ConnectionUse};
use super::limit_key::LimitKey;
use super::limits::HttpLimits;

/// Limits the number of open connections. Clones share the count of connections.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimiter {
    max: usize,
    per_peer_max: usize,
    unauthenticated_max: usize,
    open: Arc<Mutex<ConnectionTable>>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    last: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// The peer for which the connection is counted. `None` for a trusted proxy, which serves many clients.
    key: Option<LimitKey>,
    tracker: ConnectionTracker,
    evicted: CancellationToken,
}

/// The permission to keep one connection open. Dropping this value gives the permission back.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    id: u64,
    evicted: CancellationToken,
    open: Arc<Mutex<ConnectionTable>>,
}

impl ConnectionLimiter {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            max: limits.connections,
            per_peer_max: limits.connections_per_peer,
            unauthenticated_max: limits.unauthenticated_connections,
            open: Arc::default(),
        }
    }

    /// Admits a connection of the peer `key`; `None` stands for a trusted proxy. If a connection limit is
    /// reached, closes another connection first. Returns `None` if no connection can be closed.
    pub(super) fn open(
        &self,
        key: Option<LimitKey>,
        tracker: &ConnectionTracker,
    ) -> Option<ConnectionPermit> {
        let mut table = self.open.lock();
        if let Some(key) = key {
            if table.count(|connection, _| connection.key == Some(key)) >= self.per_peer_max {
                table.evict(|connection| connection.key == Some(key))?;
            }
            if table.count(|_, used| !used.is_authenticated) >= self.unauthenticated_max {
                table.evict(|_| true)?;
            }
        }
        if table.connections.len() >= self.max {
            table.evict(|_| true)?;
        }
        table.last += 1;
        let (id, evicted) = (table.last, CancellationToken::new());
        let connection = Connection { key, tracker: tracker.clone(), evicted: evicted.clone() };
        table.connections.insert(id, connection);
        Some(ConnectionPermit { id, evicted, open: self.open.clone() })
    }
}

impl ConnectionTable {
    fn count(&self, is_counted: impl Fn(&Connection, ConnectionUse) -> bool) -> usize {
        self.connections
            .values()
            .filter(|connection| is_counted(connection, connection.tracker.connection_use()))
            .count()
    }

    /// Closes one of the connections for which `may` returns true, to make room for another connection. Returns `None`
    /// if there is none that may be closed, because each of them is authenticated and has a request in flight.
    fn evict(&mut self, may: impl Fn(&Connection) -> bool) -> Option<()> {
        let candidates = self.connections.iter().filter(|(_, connection)| may(connection));
        let candidates: Vec<(u64, Option<LimitKey>, ConnectionUse)> = candidates
            .map(|(id, connection)| (*id, connection.key, connection.tracker.connection_use()))
            .filter(|(.., used)| !(used.is_authenticated && used.is_active))
            .collect();
        let choose = |is_authenticated: bool| {
            let of_kind = || candidates.iter().filter(|(.., used)| used.is_authenticated == is_authenticated);
            let mut count_by_key: HashMap<Option<LimitKey>, usize> = HashMap::new();
            of_kind().for_each(|(_, key, _)| *count_by_key.entry(*key).or_default() += 1);
            let chosen = of_kind().max_by_key(|(id, key, used)| {
                (count_by_key.get(key).copied(), Reverse(used.since), Reverse(*id))
            });
            chosen.map(|(id, ..)| *id)
        };
        let id = choose(false).or_else(|| choose(true))?;
        self.connections.remove(&id)?.evicted.cancel();
        Some(())
    }
}

impl ConnectionPermit {
    /// Waits until the limiter closes this connection to make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.lock().connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Version;

    use super::*;

    fn limiter(max: usize, per_peer_max: usize, unauthenticated_max: usize) -> ConnectionLimiter {
        ConnectionLimiter { max, per_peer_max, unauthenticated_max, open: Arc::default() }
    }

    fn key(last: u8) -> Option<LimitKey> {
        Some(LimitKey::Address([192, 0, 2, last].into()))
    }

    fn stranger(limiter: &ConnectionLimiter, last: u8) -> ConnectionPermit {
        limiter.open(key(last), &ConnectionTracker::new()).expect("a place")
    }

    fn client(limiter: &ConnectionLimiter, last: u8) -> (ConnectionPermit, ConnectionTracker) {
        let tracker = ConnectionTracker::new();
        let open = limiter.open(key(last), &tracker).expect("a place");
        tracker.set_authenticated();
        (open, tracker)
    }

    fn are_closed(connections: &[ConnectionPermit]) -> Vec<bool> {
        connections.iter().map(|connection| connection.evicted.is_cancelled()).collect()
    }

    #[test]
    fn the_oldest_unauthenticated_connection_of_a_peer_is_evicted_first() {
        let limiter = limiter(9, 3, 9);
        let (honest, _) = client(&limiter, 1);
        let strangers: Vec<_> = (0..4).map(|_| stranger(&limiter, 1)).collect();
        assert_eq!(are_closed(&strangers), [true, true, false, false]);
        let (late, _) = client(&limiter, 1);
        assert_eq!(are_closed(&strangers), [true, true, true, false]);
        assert_eq!(are_closed(&[honest, late]), [false, false]);
    }

    #[test]
    fn unauthenticated_connections_share_a_limit_and_the_rest_is_reserved() {
        let limiter = limiter(6, 6, 2);
        let strangers: Vec<_> = (1..=4).map(|last| stranger(&limiter, last)).collect();
        assert_eq!(are_closed(&strangers), [true, true, false, false]);
        let clients: Vec<_> = (0..6).map(|_| client(&limiter, 9).0).collect();
        assert_eq!(are_closed(&strangers), [true; 4]);
        assert_eq!(are_closed(&clients), [false; 6]);
    }

    #[test]
    fn the_peer_with_most_unauthenticated_connections_loses_one() {
        let limiter = limiter(9, 9, 4);
        let lone = stranger(&limiter, 1);
        let many: Vec<_> = (0..3).map(|_| stranger(&limiter, 2)).collect();
        let _newcomer = stranger(&limiter, 3);
        assert_eq!(are_closed(&[lone]), [false]);
        assert_eq!(are_closed(&many), [true, false, false]);
    }

    #[test]
    fn idle_authenticated_connections_are_evicted_and_active_ones_are_not() {
        let limiter = limiter(2, 2, 2);
        let (busy, tracker) = client(&limiter, 1);
        let active = tracker.begin_request(Version::HTTP_11);
        let (idle, _) = client(&limiter, 1);
        let (newcomer, newcomers_tracker) = client(&limiter, 1);
        let _newcomers_request = newcomers_tracker.begin_request(Version::HTTP_11);
        let all = [busy, idle, newcomer];
        assert_eq!(are_closed(&all), [false, true, false]);
        assert!(limiter.open(key(1), &ConnectionTracker::new()).is_none(), "both are in use");
        drop(active);
        assert!(limiter.open(key(1), &ConnectionTracker::new()).is_some());
    }

    #[test]
    fn a_trusted_proxy_is_bounded_by_the_total_limit_only() {
        let limiter = limiter(3, 1, 1);
        let tracker = ConnectionTracker::new();
        tracker.set_authenticated();
        let _active = tracker.begin_request(Version::HTTP_11);
        let proxys: Vec<_> = (0..3).map(|_| limiter.open(None, &tracker)).collect();
        assert!(proxys.iter().all(Option::is_some));
        assert!(limiter.open(None, &tracker).is_none());
        drop(proxys);
        assert_eq!(limiter.open.lock().connections.len(), 0, "places come back");
    }
}
