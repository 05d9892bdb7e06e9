//! Whose connections and requests are counted together.

use std::net::{IpAddr, Ipv6Addr};

use crate::access::Peer;

/// One IPv4 address, one IPv6 network (/64: who has one has all of its addresses), or one user of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    Address(IpAddr),
    User(u32),
}

impl Origin {
    pub(super) fn of(peer: &Peer) -> Self {
        match peer {
            Peer::Unix { uid, .. } => Self::User(*uid),
            Peer::Tcp(address) => Self::of_address(address.ip()),
            Peer::Forwarded(address) => Self::of_address(*address),
        }
    }

    fn of_address(address: IpAddr) -> Self {
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
    fn a_network_of_ipv6_is_one_origin_and_a_mapped_address_is_its_ipv4() {
        let of = |address: &str| Origin::of(&Peer::Forwarded(address.parse().expect("an address")));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
