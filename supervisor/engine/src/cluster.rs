//! The part of this engine in a cluster, as its requests see it: which host has what they name, and the connections to the others.

mod peers;

use lockhouse_cluster::Membership;

use peers::Peers;
pub(crate) use peers::{ForwardedCaller, HostPeer};

/// The part of this engine in a cluster.
#[derive(Debug)]
pub struct Cluster {
    membership: Membership,
    peers: Peers,
}

impl Cluster {
    pub fn new(membership: Membership) -> Self {
        Self { peers: Peers::new(membership.clone()), membership }
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }
}
