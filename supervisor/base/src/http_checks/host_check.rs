//! Checks the `Host` and `Origin` of requests, against DNS rebinding.
//!
//! A web page of an attacker can send requests to this server from a user's browser. If the page's domain name resolves
//! to the address of this server, the page can also read the responses. Such requests carry the attacker's domain in
//! the headers `Host` and `Origin`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The properties of the connection on which a request arrived.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo {
    /// The local address of the connection; `None` for a Unix domain socket.
    pub local: Option<SocketAddr>,
    /// Whether the client sent the request over TLS.
    pub is_tls: bool,
}

/// A configured host name of this server (`hosts` of `[http]`), for one port, or for every port if `port` is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName {
    name: String,
    port: Option<u16>,
}

/// A web origin whose pages may send requests (`origins` of `[http]`): `http://NAME` or `https://NAME`, with `:PORT` if
/// the port is not the default one, as browsers send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageOrigin(String);

/// Why an entry of the settings `hosts` or `origins` is invalid.
#[derive(Debug, Error)]
pub enum InvalidWebName {
    #[error("{0:?} is not a host: write NAME or NAME:PORT, such as mcp.example.com")]
    Host(String),
    #[error("{0:?} is not an origin: write https://NAME or http://NAME:PORT, without a path")]
    Origin(String),
}

impl HostName {
    /// Returns the names and addresses of the loopback interface, with every port.
    #[must_use]
    pub fn any_loopback() -> Vec<Self> {
        ["localhost", "127.0.0.1", "::1"].map(|name| Self { name: name.to_owned(), port: None }).into()
    }
}

impl From<HostName> for String {
    fn from(HostName { name, port }: HostName) -> Self {
        let name = if name.contains(':') { format!("[{name}]") } else { name };
        port.map_or(name.clone(), |port| format!("{name}:{port}"))
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidWebName;

    fn try_from(text: String) -> Result<Self, InvalidWebName> {
        let error = || InvalidWebName::Host(text.clone());
        let authority = Authority::from_str(&text).map_err(|_| error())?;
        let is_plain = !text.contains('@') && !authority.host().is_empty() && !text.contains('*');
        let port = explicit_port(&authority).map_err(|()| error())?;
        is_plain.then(|| Self { name: normalized_name(&authority), port }).ok_or_else(error)
    }
}

impl From<PageOrigin> for String {
    fn from(origin: PageOrigin) -> Self {
        origin.0
    }
}

impl TryFrom<String> for PageOrigin {
    type Error = InvalidWebName;

    fn try_from(text: String) -> Result<Self, InvalidWebName> {
        let error = || InvalidWebName::Origin(text.clone());
        let (scheme, authority) = text.split_once("://").ok_or_else(error)?;
        let is_web = scheme == "http" || scheme == "https";
        HostName::try_from(authority.to_owned()).map_err(|_| error())?;
        is_web.then(|| Self(text.to_lowercase())).ok_or_else(error)
    }
}

/// The configured host names and origins that requests may have.
#[derive(Debug)]
pub struct HostCheck {
    pub hosts: Vec<HostName>,
    pub origins: Vec<PageOrigin>,
}

/// Why a request is refused because of its host or origin. The text says what to do where that does not depend on the
/// server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostFault {
    #[error("{0}")]
    Ambiguous(&'static str),
    #[error("{0} is not a host name of this server")]
    OtherHost(Authority),
    #[error("web pages of this origin are not allowed")]
    OtherOrigin,
}

impl HostFault {
    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Ambiguous(_) => StatusCode::BAD_REQUEST,
            Self::OtherHost(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::OtherOrigin => StatusCode::FORBIDDEN,
        }
    }
}

/// Returns the host of a request, from its `Host` header or its URL.
///
/// # Errors
/// [`HostFault::Ambiguous`] if both are missing, if they differ, or if there are several `Host` headers.
pub fn requested_host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, HostFault> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let of_header = match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(HostFault::Ambiguous("there are several Host headers")),
        (None, None) => None,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(|host| Authority::from_str(host).ok());
            Some(
                host.filter(|host| !host.as_str().contains('@'))
                    .ok_or(HostFault::Ambiguous("the Host header is not a host"))?,
            )
        }
    };
    match (uri.authority().cloned(), of_header) {
        (Some(of_target), Some(of_header)) if of_target != of_header => {
            Err(HostFault::Ambiguous("the Host header and the URL name different hosts"))
        }
        (Some(authority), _) | (None, Some(authority)) => Ok(authority),
        (None, None) => Err(HostFault::Ambiguous("the Host header is missing")),
    }
}

/// Whether a host is `localhost` or a loopback address, with any port: its requests do not leave the host of the
/// browser.
pub fn is_loopback_name(host: &Authority) -> bool {
    let name = normalized_name(host);
    name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

impl HostCheck {
    /// Checks the host of a request. Accepts the connection's local address, `localhost` if that address is a loopback
    /// address, and the configured hosts.
    ///
    /// # Errors
    /// [`HostFault::OtherHost`].
    pub fn check_host_name(&self, asked: &Authority, connection: ConnectionInfo) -> Result<(), HostFault> {
        let error = || HostFault::OtherHost(asked.clone());
        let (name, port) = (normalized_name(asked), explicit_port(asked).map_err(|()| error())?);
        let is_configured = self.hosts.iter().any(|host| {
            host.name == name
                && host.port.is_none_or(|allowed| allowed == port.unwrap_or(default_port(connection)))
        });
        if is_configured || is_own_address(connection, &name, port) { Ok(()) } else { Err(error()) }
    }

    /// Checks the `Origin` header. Accepts requests without this header, with this server's own origin, and with the
    /// configured origins. `host` is the checked host of the request, or `None` on a Unix domain socket, where the host
    /// is not checked.
    ///
    /// # Errors
    /// [`HostFault::OtherOrigin`].
    pub fn check_origin(
        &self,
        headers: &HeaderMap,
        host: Option<&Authority>,
        connection: ConnectionInfo,
    ) -> Result<(), HostFault> {
        let scheme = if connection.is_tls { "https" } else { "http" };
        let is_own = |origin: &str| {
            let authority = origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
            authority.and_then(|own| Authority::from_str(own).ok()).is_some_and(|own| {
                host == Some(&own)
                    || explicit_port(&own)
                        .is_ok_and(|port| is_own_address(connection, &normalized_name(&own), port))
            })
        };
        for origin in headers.get_all(header::ORIGIN) {
            // An origin that is not text is foreign.
            let origin = origin.to_str().unwrap_or_default().to_lowercase();
            if !is_own(&origin) && !self.origins.iter().any(|allowed| allowed.0 == origin) {
                return Err(HostFault::OtherOrigin);
            }
        }
        Ok(())
    }
}

/// Returns whether a name and port are the connection's local address, or `localhost` if that address is a loopback
/// address. `None` stands for the default port of the scheme.
fn is_own_address(connection: ConnectionInfo, name: &str, port: Option<u16>) -> bool {
    connection.local.is_some_and(|local| {
        let address = local.ip().to_canonical();
        let is_it = name.parse().is_ok_and(|named: IpAddr| named.to_canonical() == address)
            || (address.is_loopback() && name == "localhost");
        is_it && port.unwrap_or(default_port(connection)) == local.port()
    })
}

fn default_port(connection: ConnectionInfo) -> u16 {
    if connection.is_tls { 443 } else { 80 }
}

/// Returns the host name of an authority in lower case, without brackets of IPv6 and without a trailing dot.
fn normalized_name(authority: &Authority) -> String {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the port of an authority, or `None` if it has no port. Fails if the port is not a number, because
/// `Authority` does not check this.
fn explicit_port(authority: &Authority) -> Result<Option<u16>, ()> {
    let rest = &authority.as_str()[authority.as_str().rfind(']').map_or(0, |end| end + 1)..];
    match rest.rsplit_once(':') {
        None => Ok(None),
        Some((_, port)) => port.parse().map(Some).map_err(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_check() -> HostCheck {
        let host = |text: &str| HostName::try_from(text.to_owned()).expect("a host");
        let origin = PageOrigin::try_from("https://app.example.com".to_owned()).expect("an origin");
        HostCheck { hosts: vec![host("mcp.example.com"), host("Proxy:8443")], origins: vec![origin] }
    }

    fn host(asked: &str, local: &str) -> bool {
        let connection = ConnectionInfo { local: Some(local.parse().expect("an address")), is_tls: false };
        host_check().check_host_name(&asked.parse().expect("an authority"), connection).is_ok()
    }

    #[test]
    fn only_own_addresses_and_configured_hosts_are_accepted() {
        for (asked, local, passes) in [
            ("127.0.0.1:7300", "127.0.0.1:7300", true),
            ("localhost:7300", "127.0.0.1:7300", true),
            ("LOCALHOST.:7300", "[::1]:7300", true),
            ("[::1]:7300", "[::1]:7300", true),
            ("127.0.0.1:7300", "[::ffff:127.0.0.1]:7300", true),
            ("127.0.0.1", "127.0.0.1:80", true),
            ("10.0.0.5:7300", "10.0.0.5:7300", true),
            ("mcp.example.com", "10.0.0.5:7300", true),
            ("mcp.example.com:9", "10.0.0.5:7300", true),
            ("proxy:8443", "10.0.0.5:7300", true),
            ("proxy:8444", "10.0.0.5:7300", false),
            ("proxy", "10.0.0.5:7300", false),
            ("127.0.0.1:7301", "127.0.0.1:7300", false),
            ("localhost:7300", "10.0.0.5:7300", false),
            ("127.0.0.1", "127.0.0.1:7300", false),
            ("evil.example:7300", "127.0.0.1:7300", false),
            ("localhost.evil.example:7300", "127.0.0.1:7300", false),
            ("mcp.example.com.evil.example", "127.0.0.1:7300", false),
            ("10.0.0.6:7300", "10.0.0.5:7300", false),
        ] {
            assert_eq!(host(asked, local), passes, "{asked} at {local}");
        }
    }

    #[test]
    fn only_own_and_configured_origins_are_accepted() {
        let connection = ConnectionInfo { local: Some(([127, 0, 0, 1], 7300).into()), is_tls: false };
        for (origin, passes) in [
            ("http://127.0.0.1:7300", true),
            ("http://localhost:7300", true),
            ("http://mcp.example.com", true),
            ("http://mcp.example.com:9", false),
            ("http://localhost", false),
            ("https://app.example.com", true),
            ("https://APP.example.com", true),
            ("https://127.0.0.1:7300", false),
            ("http://127.0.0.1:7301", false),
            ("http://app.example.com", false),
            ("https://app.example.com:444", false),
            ("https://evil.example", false),
            ("null", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ORIGIN, origin.parse().expect("a value"))]);
            let authority = Authority::from_static("mcp.example.com");
            assert_eq!(
                host_check().check_origin(&headers, Some(&authority), connection).is_ok(),
                passes,
                "{origin}"
            );
        }
        assert!(host_check().check_origin(&HeaderMap::new(), None, connection).is_ok());
    }

    #[test]
    fn invalid_hosts_and_origins_are_rejected() {
        for wrong in ["", "https://x", "a b", "u@x", "x:port", "*.example.com", "x/y"] {
            assert!(HostName::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "ftp://x", "https://", "https://x/", "https://*", "null"] {
            assert!(PageOrigin::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
