//! Places to listen at, as people write them.

use std::fmt::{Display, Formatter};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    Tcp(SocketAddr),
    /// `unix:/PATH`
    Unix(PathBuf),
}

impl Address {
    /// Whether nobody but this host reaches it.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What is written is no address.
#[derive(Debug, Error)]
pub enum InvalidAddress {
    #[error("{0:?} is no address: the path of a socket begins with /")]
    RelativePath(String),
    #[error("{0:?} is no address: write IP:PORT, such as 127.0.0.1:7300 or [::1]:7300, or unix:/PATH")]
    Form(String),
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(written: &str) -> Result<Self, InvalidAddress> {
        if let Some(path) = written.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            let relative = || InvalidAddress::RelativePath(written.to_owned());
            return path.is_absolute().then_some(Self::Unix(path)).ok_or_else(relative);
        }
        written.parse().map(Self::Tcp).map_err(|_| InvalidAddress::Form(written.to_owned()))
    }
}

impl TryFrom<String> for Address {
    type Error = InvalidAddress;

    fn try_from(written: String) -> Result<Self, InvalidAddress> {
        written.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_local_or_not() {
        for (written, is_local) in [
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
            let address = written.parse::<Address>();
            assert_eq!(address.ok().map(|address| address.is_local()), is_local, "{written}");
        }
    }
}
