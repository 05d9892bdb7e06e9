//! How many connections there are, of everybody and of each peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    open: Arc<Mutex<HashMap<Origin, usize>>>,
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    origin: Origin,
    open: Arc<Mutex<HashMap<Origin, usize>>>,
}

impl Counts {
    pub(super) fn new(max: usize, per_peer_max: usize) -> Self {
        Self { max, per_peer_max, open: Arc::default() }
    }

    /// A place, if there is one for this peer.
    pub(super) fn take(&self, peer: &Peer) -> Option<Counted> {
        let origin = Origin::of(peer);
        let mut open = locked(&self.open);
        let of_peer = open.get(&origin).copied().unwrap_or(0);
        if of_peer >= self.per_peer_max || open.values().sum::<usize>() >= self.max {
            return None;
        }
        open.insert(origin, of_peer + 1);
        Some(Counted { origin, open: self.open.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = locked(&self.open);
        match open.get_mut(&self.origin) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.origin)),
        }
    }
}

fn locked(open: &Mutex<HashMap<Origin, usize>>) -> MutexGuard<'_, HashMap<Origin, usize>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(format!("{address}:1").parse().expect("an address"))
    }

    #[test]
    fn places_are_for_each_and_for_all_and_come_back() {
        let counts = Counts::new(3, 2);
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
        let counts = Counts::new(9, 1);
        let _one = counts.take(&peer("[2001:db8::1]")).expect("a place");
        assert!(counts.take(&peer("[2001:db8::ffff:2]")).is_none());
        let _other = counts.take(&peer("[2001:db8:0:1::1]")).expect("a place");
        let _mapped = counts.take(&peer("[::ffff:192.0.2.1]")).expect("a place");
        assert!(counts.take(&peer("192.0.2.1")).is_none());
        assert!(counts.take(&Peer::Unix { uid: 1, gid: 1, pid: None }).is_some());
    }
}
