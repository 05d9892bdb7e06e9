//! The part of this engine in a cluster, as its requests see it: which host has what they name, and the connections to the others.

mod peers;

use std::cmp::Reverse;

use lockhouse_cluster::{Host, Membership};

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

    /// Returns the hosts with free workers, those with most of them first.
    pub(crate) fn hosts_with_room(&self) -> Vec<Host> {
        let mut hosts = self.membership.others();
        hosts.retain(|host| host.record.report.free > 0 && !host.record.report.draining);
        hosts.sort_by_key(|host| Reverse(host.record.report.free));
        hosts
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }
}
