//! The addresses of the NATS servers and of the S3 server. Only those of this machine go without TLS.

use std::str::FromStr;

/// The address of a NATS server: `tls://HOST:PORT`, or `nats://HOST:PORT` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateAddress(String);

/// A text is no address of a NATS server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected tls://HOST:PORT, or nats://127.0.0.1:PORT for a server on this machine")]
pub struct InvalidStateAddress;

impl StateAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host and the port.
    pub(crate) fn host_and_port(&self) -> &str {
        self.0.split_once("://").map_or(&self.0, |(_, rest)| rest)
    }

    /// Whether the connection to the server is encrypted.
    pub fn uses_tls(&self) -> bool {
        self.0.starts_with("tls://")
    }
}

impl FromStr for StateAddress {
    type Err = InvalidStateAddress;

    fn from_str(text: &str) -> Result<Self, InvalidStateAddress> {
        let (is_local_only, rest) = match (text.strip_prefix("tls://"), text.strip_prefix("nats://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(InvalidStateAddress),
        };
        let (host, port) = rest.rsplit_once(':').ok_or(InvalidStateAddress)?;
        let has_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        // A name and a password in the address would be in the configuration as plain text.
        let is_name = !host.is_empty() && !host.contains(['@', '/', '?', '#', ' ']);
        match has_port && is_name && (is_this_machine(host) || !is_local_only) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidStateAddress),
        }
    }
}

/// The address of an S3 server: `https://HOST` or `https://HOST:PORT`, or `http://` on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageAddress(String);

/// A text is no address of an S3 server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected https://HOST or https://HOST:PORT, or http://127.0.0.1:PORT for a server on this machine")]
pub struct InvalidStorageAddress;

impl StorageAddress {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the connection to the server is encrypted.
    pub(crate) fn uses_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl FromStr for StorageAddress {
    type Err = InvalidStorageAddress;

    fn from_str(text: &str) -> Result<Self, InvalidStorageAddress> {
        let (is_local_only, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(InvalidStorageAddress),
        };
        // The address of IPv6 has colons in brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let has_valid_port = port.is_none_or(is_port);
        // A name and a password in the address would be in the configuration as plain text.
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        let is_name = !host.is_empty() && host.bytes().all(is_allowed);
        match has_valid_port && is_name && (is_this_machine(host) || !is_local_only) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidStorageAddress),
        }
    }
}

/// Whether the host of an address is this machine, so that a connection needs no TLS.
fn is_this_machine(host: &str) -> bool {
    matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nats_servers_of_this_machine_go_without_tls() {
        for (address, uses_tls) in [
            ("tls://nats.example.com:4222", Some(true)),
            ("tls://10.0.0.1:4222", Some(true)),
            ("nats://127.0.0.1:4222", Some(false)),
            ("nats://[::1]:4222", Some(false)),
            ("nats://10.0.0.1:4222", None),
            ("nats://nats.example.com:4222", None),
            ("tls://user:password@nats.example.com:4222", None),
            ("tls://nats.example.com", None),
            ("tls://:4222", None),
            ("tls://nats.example.com:0", None),
            ("ws://nats.example.com:4222", None),
        ] {
            let parsed = address.parse::<StateAddress>();
            assert_eq!(parsed.ok().map(|address| address.uses_tls()), uses_tls, "{address}");
        }
    }

    #[test]
    fn only_s3_servers_of_this_machine_go_without_tls() {
        for (address, uses_tls) in [
            ("https://s3.example.com", Some(true)),
            ("https://s3.example.com:9000", Some(true)),
            ("https://[2001:db8::1]:9000", Some(true)),
            ("https://[2001:db8::1]", Some(true)),
            ("http://127.0.0.1:9000", Some(false)),
            ("http://localhost", Some(false)),
            ("http://[::1]:9000", Some(false)),
            ("http://10.0.0.1:9000", None),
            ("http://s3.example.com", None),
            ("https://user:password@s3.example.com", None),
            ("https://s3.example.com/path", None),
            ("https://s3.example.com:0", None),
            ("https://s3.example.com:70000", None),
            ("https://s3.example.com:", None),
            ("https://", None),
            ("s3://bucket", None),
        ] {
            let parsed = address.parse::<StorageAddress>();
            assert_eq!(parsed.ok().map(|address| address.uses_tls()), uses_tls, "{address}");
        }
    }
}
