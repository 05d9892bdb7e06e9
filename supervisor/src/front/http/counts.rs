//! How many connections there are, of everybody and of each peer, and how fast a peer's come in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::HttpLimits;
use crate::access::Peer;

/// One that may have so many connections: who has a network of IPv6 has all of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Address(IpAddr),
    User(u32),
}

impl Origin {
    fn of(peer: &Peer) -> Self {
        match peer {
            Peer::Unix { uid, .. } => Self::User(*uid),
            Peer::Tcp(address) => match address.ip().to_canonical() {
                IpAddr::V6(address) => {
                    Self::Address(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into())
                }
                address @ IpAddr::V4(_) => Self::Address(address),
            },
        }
    }
}

/// The connections that are open. Copies count together.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    max: usize,
    per_peer_max: usize,
    /// Of one peer, from the beginning of one connection to that of the next, once it has begun as many as [`BURST`] permits.
    interval: Duration,
    open: Arc<Mutex<HashMap<Origin, Open>>>,
}

/// How long a peer must have rested to begin as many connections at once as it may in that time.
const BURST: Duration = Duration::from_secs(4);

/// The connections of one peer.
#[derive(Clone, Copy, Debug)]
struct Open {
    count: usize,
    /// When all that it has begun would have begun at its rate: of the generic cell rate algorithm.
    due: Instant,
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    /// When it is to be served: a peer's connections that come too fast wait, and hold their places meanwhile.
    pub(super) turn: Instant,
    origin: Origin,
    open: Arc<Mutex<HashMap<Origin, Open>>>,
}

impl Counts {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            max: limits.connections,
            per_peer_max: limits.connections_per_peer,
            interval: Duration::from_secs(1) / limits.connections_per_peer_per_second,
            open: Arc::default(),
        }
    }

    /// A place, if there is one for this peer.
    pub(super) fn take(&self, peer: &Peer) -> Option<Counted> {
        self.take_at(peer, Instant::now())
    }

    fn take_at(&self, peer: &Peer, now: Instant) -> Option<Counted> {
        let origin = Origin::of(peer);
        let mut open = locked(&self.open);
        open.retain(|_, peer| peer.count > 0 || peer.due > now);
        let in_all: usize = open.values().map(|peer| peer.count).sum();
        let of_peer = open.get(&origin).copied().unwrap_or(Open { count: 0, due: now });
        if of_peer.count >= self.per_peer_max || in_all >= self.max {
            return None;
        }
        let due = of_peer.due.max(now) + self.interval;
        open.insert(origin, Open { count: of_peer.count + 1, due });
        let turn = due.checked_sub(BURST).map_or(now, |turn| turn.max(now));
        Some(Counted { turn, origin, open: self.open.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(peer) = locked(&self.open).get_mut(&self.origin) {
            peer.count -= 1;
        }
    }
}

fn locked(open: &Mutex<HashMap<Origin, Open>>) -> MutexGuard<'_, HashMap<Origin, Open>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(max: usize, per_peer_max: usize, per_second: u32) -> Counts {
        Counts { max, per_peer_max, interval: Duration::from_secs(1) / per_second, open: Arc::default() }
    }

    fn peer(address: &str) -> Peer {
        Peer::Tcp(format!("{address}:1").parse().expect("an address"))
    }

    #[test]
    fn places_are_for_each_and_for_all_and_come_back() {
        let counts = counts(3, 2, 50);
        let first = counts.take(&peer("192.0.2.1")).expect("a place");
        let _second = counts.take(&peer("192.0.2.1")).expect("a place");
        assert!(counts.take(&peer("192.0.2.1")).is_none());
        let _third = counts.take(&peer("192.0.2.2")).expect("a place");
        assert!(counts.take(&peer("192.0.2.3")).is_none());
        drop(first);
        assert!(counts.take(&peer("192.0.2.1")).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_its_ipv4() {
        let counts = counts(9, 1, 50);
        let _one = counts.take(&peer("[2001:db8::1]")).expect("a place");
        assert!(counts.take(&peer("[2001:db8::ffff:2]")).is_none());
        let _other = counts.take(&peer("[2001:db8:0:1::1]")).expect("a place");
        let _mapped = counts.take(&peer("[::ffff:192.0.2.1]")).expect("a place");
        assert!(counts.take(&peer("192.0.2.1")).is_none());
        assert!(counts.take(&Peer::Unix { uid: 1, gid: 1, pid: None }).is_some());
    }

    #[test]
    fn a_peer_that_begins_too_many_waits_and_others_do_not() {
        let (counts, began, half) = (counts(9, 9, 2), Instant::now(), Duration::from_millis(500));
        let at_once = 8;
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        // In halves of a second. Places are given back at once: what counts is how many begin.
        let waits = |peer: &Peer, after: u32| {
            let now = began + half * after;
            (counts.take_at(peer, now).expect("a place").turn - now).as_millis() / half.as_millis()
        };
        assert!((0..at_once).all(|_| waits(&one, 0) == 0));
        assert_eq!([waits(&one, 0), waits(&one, 0)], [1, 2]);
        assert_eq!(waits(&other, 0), 0);
        assert_eq!([waits(&one, 4), waits(&one, 4), waits(&one, 4)], [0, 0, 1]);
        assert_eq!(waits(&other, 25), 0);
        assert_eq!(locked(&counts.open).len(), 1, "who has rested is forgotten");
    }
}
