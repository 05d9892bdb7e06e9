//! The content of the lease of a host.

use std::net::SocketAddr;

use lockhouse_messages::{Base64Bytes, HostTag};
use serde::{Deserialize, Serialize};

/// The lease of a host. Other versions may have further members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// This life of the host.
    pub tag: HostTag,
    /// Where the host accepts connections of the others.
    pub address: SocketAddr,
    /// The public key of the host, in DER.
    pub key: Base64Bytes,
    /// The version of Lockhouse.
    pub version: String,
    /// When this life began, in seconds since 1970.
    pub started: u64,
    /// The clock of the host when it wrote this, in milliseconds since 1970.
    pub clock: u64,
    /// Whether this life has ended.
    #[serde(default)]
    pub has_left: bool,
    #[serde(default)]
    pub report: HostReport,
}

/// The part of a lease that changes while the host runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostReport {
    /// Whether the host ends, and takes no new requests.
    pub draining: bool,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that could begin at once.
    pub free: usize,
    /// Number of open sessions.
    pub sessions: usize,
    /// SHA-256 of the configuration in force.
    pub configuration: String,
    /// SHA-256 of the policy in force.
    pub policy: String,
}
