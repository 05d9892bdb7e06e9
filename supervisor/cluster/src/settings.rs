//! The settings of a cluster, from the configuration table `[cluster]`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use lockhouse_base::sealing_key::SealingKey;

use crate::server_addresses::StateAddress;
use crate::value_settings::ValueSettings;

/// Maximum length of the name of a host, in characters.
/// Bound: hosts of a cluster.
const NAME_CHARS_MAX: usize = 63;

/// The name of a host in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// A text is no name of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a host in a cluster must have 1 to {NAME_CHARS_MAX} of a-z, 0-9 and '-'")]
pub struct InvalidHostName;

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<Self, InvalidHostName> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        match (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidHostName),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How to connect to the state that the hosts share.
#[derive(Clone, Debug)]
pub struct StateConnection {
    /// The name of this host, or of who connects.
    pub name: HostName,
    /// The NATS servers, of which one is enough.
    pub servers: Vec<StateAddress>,
    /// The seed of the NKEY. `None` if the servers ask for none.
    pub nkey: Option<String>,
    /// The file with the certificates that must have issued those of the NATS servers. `None` for those that the system trusts.
    pub authorities: Option<PathBuf>,
}

/// How this host takes part in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The name is that of this host, which no other one has.
    pub connection: StateConnection,
    /// The key that seals the logins and skills that all hosts share. `None` if each host has its own.
    pub shared_key: Option<SealingKey>,
    /// Whether the audit log of this host is copied to the shared state.
    pub copies_audit: bool,
    /// How stored values are copied to S3. `None` if they are not.
    pub values: Option<ValueSettings>,
    /// Number of NATS servers that keep each value, for buckets that this host creates.
    pub replicas: usize,
    /// Where this host accepts connections of the others.
    pub listen: SocketAddr,
    /// Where the others find it. `None` for the address with which it reaches NATS, and the port of `listen`.
    pub address: Option<SocketAddr>,
    /// The file with the key of this host, which is created if it is not there.
    pub key_file: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_plain() {
        for (name, is_valid) in [
            ("h1", true),
            ("host-7", true),
            ("", false),
            ("H1", false),
            ("a.b", false),
            ("a*", false),
            ("ä", false),
        ] {
            assert_eq!(name.parse::<HostName>().is_ok(), is_valid, "{name}");
        }
        assert!("a".repeat(63).parse::<HostName>().is_ok() && "a".repeat(64).parse::<HostName>().is_err());
    }
}
