//! The key by which limits count connections and requests of a peer.

use std::net::{IpAddr, Ipv6Addr};

use crate::access::Peer;

/// The key by which a peer is counted: one IPv4 address, one IPv6 /64 network (whose owner has all of its addresses),
/// or one user of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LimitKey {
    Address(IpAddr),
    User(u32),
}

impl LimitKey {
    pub(super) fn for_peer(peer: &Peer) -> Self {
        match peer {
            Peer::Unix { uid, .. } => Self::User(*uid),
            Peer::Tcp(address) => Self::for_address(address.ip()),
            Peer::Forwarded(address) => Self::for_address(*address),
        }
    }

    fn for_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                Self::Address(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into())
            }
            address @ IpAddr::V4(_) => Self::Address(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_has_one_key_and_a_mapped_address_counts_as_ipv4() {
        let of = |address: &str| LimitKey::for_peer(&Peer::Forwarded(address.parse().expect("an address")));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
