//! Parses listen addresses in the configuration and on the command line.

use std::fmt::{Display, Formatter};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An address at which the server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ListenAddress {
    Tcp(SocketAddr),
    /// The path of a Unix domain socket, written `unix:/PATH`.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns whether only this host can reach the address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl Display for ListenAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why a text is not a listen address.
#[derive(Debug, Error)]
pub enum InvalidListenAddress {
    #[error("{0:?} is not a listen address: the path of a socket begins with /")]
    RelativePath(String),
    #[error(
        "{0:?} is not a listen address: write IP:PORT, such as 127.0.0.1:7300 or [::1]:7300, or unix:/PATH"
    )]
    Form(String),
}

impl FromStr for ListenAddress {
    type Err = InvalidListenAddress;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            let relative = || InvalidListenAddress::RelativePath(text.to_owned());
            return path.is_absolute().then_some(Self::Unix(path)).ok_or_else(relative);
        }
        text.parse().map(Self::Tcp).map_err(|_| InvalidListenAddress::Form(text.to_owned()))
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = InvalidListenAddress;

    fn try_from(text: String) -> Result<Self, InvalidListenAddress> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_unix_addresses_are_local() {
        for (text, is_local) in [
            ("127.0.0.1:1", Some(true)),
            ("127.1.2.3:1", Some(true)),
            ("[::1]:1", Some(true)),
            ("[::ffff:127.0.0.1]:1", Some(true)),
            ("unix:/run/x", Some(true)),
            ("0.0.0.0:1", Some(false)),
            ("[::]:1", Some(false)),
            ("192.0.2.1:1", Some(false)),
            ("[::ffff:192.0.2.1]:1", Some(false)),
            ("localhost:1", None),
            ("127.0.0.1", None),
            ("unix:run/x", None),
            ("", None),
        ] {
            let address = text.parse::<ListenAddress>();
            assert_eq!(address.ok().map(|address| address.is_local()), is_local, "{text}");
        }
    }
}
