//! Why a host cannot join its cluster.

use std::net::SocketAddr;

use crate::host_key::HostKeyError;
use crate::object_storage::NoStorage;
use crate::settings::HostName;
use crate::shared_state::Unavailable;

/// Why this host cannot join its cluster.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Key(#[from] HostKeyError),
    #[error(transparent)]
    State(#[from] Unavailable),
    #[error(transparent)]
    Storage(#[from] NoStorage),
    #[error(
        "another host{} has joined the cluster as {name}; give each host a name of its own (name of [cluster]). If that host \
         has ended, its lease ends after 30 s",
        address.map(|address| format!(" at {address}")).unwrap_or_default()
    )]
    NameTaken { name: HostName, address: Option<SocketAddr> },
    #[error(
        "the clocks of this host and of the NATS server differ by {seconds} s, and {limit} s is the most; synchronise them"
    )]
    Clock { seconds: u64, limit: u64 },
    #[error("the address of this host is not known, since no NATS server is found; set address of [cluster]")]
    NoAddress,
    #[error("the kernel provides no random numbers")]
    NoRandomNumbers,
}
