//! The connection limiter: how many connections are open, and which one is closed to make room for another.
//!
//! A connection is unauthenticated until a request on it was admitted. Unauthenticated connections together have a share of
//! the places, so that the rest is there for clients that have proven who they are. Where a limit is reached, a new connection
//! takes the place of the oldest unauthenticated one of the origin that has most of them; without any, of the authenticated
//! one that was idle for longest. A connection on which an admitted request is being answered is never closed for another.

use parking_lot::{Mutex, MutexGuard};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::limits::HttpLimits;
use super::origin::Origin;
use super::watched::{Use, Watch};

/// Copies count together.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimiter {
    max: usize,
    per_peer_max: usize,
    unauthenticated_max: usize,
    open: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// None for a trusted proxy, whose connections are many clients'.
    origin: Option<Origin>,
    watch: Watch,
    evicted: CancellationToken,
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection {
    id: u64,
    evicted: CancellationToken,
    open: Arc<Mutex<Table>>,
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

    /// A place for a connection of this origin (none: of a trusted proxy), if there is one or room can be made.
    pub(super) fn open(&self, origin: Option<Origin>, watch: &Watch) -> Option<OpenConnection> {
        let mut table = locked(&self.open);
        if let Some(origin) = origin {
            if table.count(|connection, _| connection.origin == Some(origin)) >= self.per_peer_max {
                table.evict(|connection| connection.origin == Some(origin))?;
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
        let connection = Connection { origin, watch: watch.clone(), evicted: evicted.clone() };
        table.connections.insert(id, connection);
        Some(OpenConnection { id, evicted, open: self.open.clone() })
    }
}

impl Table {
    fn count(&self, is_counted: impl Fn(&Connection, Use) -> bool) -> usize {
        self.connections
            .values()
            .filter(|connection| is_counted(connection, connection.watch.in_use()))
            .count()
    }

    /// Closes one of those that `may` be closed. None if all of them are in use.
    fn evict(&mut self, may: impl Fn(&Connection) -> bool) -> Option<()> {
        let candidates = self.connections.iter().filter(|(_, connection)| may(connection));
        let candidates: Vec<(u64, Option<Origin>, Use)> = candidates
            .map(|(id, connection)| (*id, connection.origin, connection.watch.in_use()))
            .filter(|(.., used)| !(used.is_authenticated && used.is_active))
            .collect();
        let choose = |is_authenticated: bool| {
            let of_kind = || candidates.iter().filter(|(.., used)| used.is_authenticated == is_authenticated);
            let mut of_origin: HashMap<Option<Origin>, usize> = HashMap::new();
            of_kind().for_each(|(_, origin, _)| *of_origin.entry(*origin).or_default() += 1);
            let chosen = of_kind().max_by_key(|(id, origin, used)| {
                (of_origin.get(origin).copied(), Reverse(used.since), Reverse(*id))
            });
            chosen.map(|(id, ..)| *id)
        };
        let id = choose(false).or_else(|| choose(true))?;
        self.connections.remove(&id)?.evicted.cancel();
        Some(())
    }
}

impl OpenConnection {
    /// Waits until its place is another connection's.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        locked(&self.open).connections.remove(&self.id);
    }
}

fn locked(open: &Mutex<Table>) -> MutexGuard<'_, Table> {
    open.lock()
}

#[cfg(test)]
mod tests {
    use axum::http::Version;

    use super::*;

    fn limiter(max: usize, per_peer_max: usize, unauthenticated_max: usize) -> ConnectionLimiter {
        ConnectionLimiter { max, per_peer_max, unauthenticated_max, open: Arc::default() }
    }

    fn origin(last: u8) -> Option<Origin> {
        Some(Origin::Address([192, 0, 2, last].into()))
    }

    fn stranger(limiter: &ConnectionLimiter, last: u8) -> OpenConnection {
        limiter.open(origin(last), &Watch::new()).expect("a place")
    }

    fn client(limiter: &ConnectionLimiter, last: u8) -> (OpenConnection, Watch) {
        let watch = Watch::new();
        let open = limiter.open(origin(last), &watch).expect("a place");
        watch.admitted();
        (open, watch)
    }

    fn are_closed(connections: &[OpenConnection]) -> Vec<bool> {
        connections.iter().map(|connection| connection.evicted.is_cancelled()).collect()
    }

    #[test]
    fn the_oldest_unauthenticated_connection_of_a_peer_makes_room_and_no_authenticated_one() {
        let limiter = limiter(9, 3, 9);
        let (honest, _) = client(&limiter, 1);
        let strangers: Vec<_> = (0..4).map(|_| stranger(&limiter, 1)).collect();
        assert_eq!(are_closed(&strangers), [true, true, false, false]);
        let (late, _) = client(&limiter, 1);
        assert_eq!(are_closed(&strangers), [true, true, true, false]);
        assert_eq!(are_closed(&[honest, late]), [false, false]);
    }

    #[test]
    fn unauthenticated_connections_together_have_their_share_and_the_rest_is_for_clients() {
        let limiter = limiter(6, 6, 2);
        let strangers: Vec<_> = (1..=4).map(|last| stranger(&limiter, last)).collect();
        assert_eq!(are_closed(&strangers), [true, true, false, false]);
        let clients: Vec<_> = (0..6).map(|_| client(&limiter, 9).0).collect();
        assert_eq!(are_closed(&strangers), [true; 4]);
        assert_eq!(are_closed(&clients), [false; 6]);
    }

    #[test]
    fn the_origin_that_has_most_unauthenticated_connections_makes_room() {
        let limiter = limiter(9, 9, 4);
        let lone = stranger(&limiter, 1);
        let many: Vec<_> = (0..3).map(|_| stranger(&limiter, 2)).collect();
        let _newcomer = stranger(&limiter, 3);
        assert_eq!(are_closed(&[lone]), [false]);
        assert_eq!(are_closed(&many), [true, false, false]);
    }

    #[test]
    fn an_idle_authenticated_connection_makes_room_and_one_that_is_in_use_does_not() {
        let limiter = limiter(2, 2, 2);
        let (busy, watch) = client(&limiter, 1);
        let active = watch.begin(Version::HTTP_11);
        let (idle, _) = client(&limiter, 1);
        let (newcomer, newcomers_watch) = client(&limiter, 1);
        let _newcomers_request = newcomers_watch.begin(Version::HTTP_11);
        let all = [busy, idle, newcomer];
        assert_eq!(are_closed(&all), [false, true, false]);
        assert!(limiter.open(origin(1), &Watch::new()).is_none(), "both are in use");
        drop(active);
        assert!(limiter.open(origin(1), &Watch::new()).is_some());
    }

    #[test]
    fn a_trusted_proxy_has_as_many_as_there_are_in_all() {
        let limiter = limiter(3, 1, 1);
        let watch = Watch::new();
        watch.admitted();
        let _active = watch.begin(Version::HTTP_11);
        let proxys: Vec<_> = (0..3).map(|_| limiter.open(None, &watch)).collect();
        assert!(proxys.iter().all(Option::is_some));
        assert!(limiter.open(None, &watch).is_none());
        drop(proxys);
        assert_eq!(locked(&limiter.open).connections.len(), 0, "places come back");
    }
}
