//! Trusted proxies: the setting `trusted_proxies` of `[http]`.
//!
//! A trusted proxy appends the address of its client to `X-Forwarded-For` or `Forwarded` (RFC 7239). Addresses to the
//! left of that come from the client and can be forged. The client is therefore the rightmost address that is not a
//! trusted proxy.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use ipnet::IpNet;
use lockhouse_base::log_throttle::LogThrottle;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::access::Peer;

const FORWARDED: &str = "forwarded";
const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// Maximum size in bytes of all lines of one forwarding header.
const BYTES_MAX: usize = 4 * 1024;
/// Maximum number of addresses in a forwarding header that are read to find the client. A request for which more would
/// be needed is refused.
/// Bound: AI clients.
const HOPS_MAX: usize = 32;

/// A trusted proxy: an address, a network, or any peer of a Unix domain socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TrustedProxy {
    Network(IpNet),
    Unix,
}

/// Why an entry of the setting `trusted_proxies` is invalid.
#[derive(Debug, Error)]
pub enum InvalidProxy {
    #[error(r#"{0:?} is not a proxy: write an address, a network such as 10.0.0.0/8, or "unix""#)]
    Form(String),
    #[error("{0:?} covers every address, so that any client could forge its address")]
    AllAddresses(String),
}

impl From<TrustedProxy> for String {
    fn from(proxy: TrustedProxy) -> Self {
        match proxy {
            TrustedProxy::Network(network) => network.to_string(),
            TrustedProxy::Unix => "unix".to_owned(),
        }
    }
}

impl TryFrom<String> for TrustedProxy {
    type Error = InvalidProxy;

    fn try_from(text: String) -> Result<Self, InvalidProxy> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let address = text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        match address.or_else(|_| text.parse::<IpNet>()) {
            Ok(network) if network.prefix_len() == 0 => Err(InvalidProxy::AllAddresses(text)),
            Ok(network) => Ok(Self::Network(network)),
            Err(_) => Err(InvalidProxy::Form(text)),
        }
    }
}

/// The configured trusted proxies. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct TrustedProxies {
    proxies: Arc<[TrustedProxy]>,
    log: Arc<LogThrottle>,
}

impl TrustedProxies {
    pub(super) fn new(proxies: &[TrustedProxy]) -> Self {
        Self { proxies: proxies.into(), log: Arc::default() }
    }

    /// Returns whether a peer is a trusted proxy.
    pub(super) fn is_trusted(&self, peer: &Peer) -> bool {
        match peer {
            Peer::Unix { .. } => self.proxies.contains(&TrustedProxy::Unix),
            Peer::Tcp(address) => self.is_trusted_address(address.ip()),
            Peer::Forwarded(_) => false,
        }
    }

    fn is_trusted_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let has =
            |proxy: &TrustedProxy| matches!(proxy, TrustedProxy::Network(net) if net.contains(&address));
        self.proxies.iter().any(has)
    }

    /// Returns the client that sent a request: the client that a trusted proxy names in its headers, or else the peer
    /// itself.
    ///
    /// # Errors
    /// Why the headers of a trusted proxy cannot be read. Such a request must be refused, because a client could have
    /// forged part of the headers.
    pub(super) fn sender(&self, peer: Peer, headers: &HeaderMap) -> Result<Peer, &'static str> {
        if !self.is_trusted(&peer) {
            return Ok(peer);
        }
        let client = self.client_address(headers).inspect_err(|why| {
            self.log.write(|times| {
                tracing::warn!(
                    "a request from the proxy {peer} is refused, since its client cannot be read: {why}{times}"
                );
            });
        })?;
        Ok(client.map_or(peer, Peer::Forwarded))
    }

    /// Returns the client address in the headers of a trusted proxy. `None` if the request has neither `Forwarded` nor
    /// `X-Forwarded-For`. Fails if they are invalid or name different clients.
    fn client_address(&self, headers: &HeaderMap) -> Result<Option<IpAddr>, &'static str> {
        let from_x_forwarded_for = join_header_lines(headers, X_FORWARDED_FOR)?.map(|text| {
            self.rightmost_untrusted(
                text.split(',').rev().map(str::trim).filter(|hop| !hop.is_empty()).map(Ok),
            )
        });
        let from_forwarded = join_header_lines(headers, FORWARDED)?.map(|text| {
            let elements = split_unquoted(&text, b',')?;
            self.rightmost_untrusted(
                elements.into_iter().rev().filter(|it| !it.trim().is_empty()).map(for_node),
            )
        });
        match (from_x_forwarded_for.transpose()?, from_forwarded.transpose()?) {
            (Some(one), Some(other)) if one != other => Err(
                "Forwarded and X-Forwarded-For name different clients: have the proxy remove the one that it does not set",
            ),
            (one, other) => Ok(one.or(other)),
        }
    }

    /// Returns the rightmost address that is not a trusted proxy, or the leftmost one if all are. `hops` are the
    /// addresses from right to left. Fails if an address that must be read is invalid, or if there are none or too
    /// many.
    fn rightmost_untrusted<'a>(
        &self,
        hops: impl Iterator<Item = Result<&'a str, &'static str>>,
    ) -> Result<IpAddr, &'static str> {
        let mut last = None;
        for (number, hop) in hops.enumerate() {
            if number >= HOPS_MAX {
                return Err("it names too many proxies");
            }
            let address = parse_address(hop?).ok_or("a hop is not an IP address")?;
            last = Some(address);
            if !self.is_trusted_address(address) {
                break;
            }
        }
        last.ok_or("the header is empty")
    }
}

/// Joins all lines of a header with commas, in their order. `None` if the request does not have the header.
fn join_header_lines(headers: &HeaderMap, name: &str) -> Result<Option<String>, &'static str> {
    let mut text: Option<String> = None;
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| "the header has bytes that are not text")?;
        let text = text.get_or_insert_default();
        if text.len() + value.len() > BYTES_MAX {
            return Err("the header is too long");
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(value);
    }
    Ok(text)
}

/// Splits the value of a header at separators outside of quoted strings.
fn split_unquoted(text: &str, separator: u8) -> Result<Vec<&str>, &'static str> {
    let (mut parts, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            byte if byte == separator && !is_quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    if is_quoted { Err("a quoted string has no end") } else { Ok(parts) }
}

/// Returns the value of the single `for` parameter in an element of the header `Forwarded`.
fn for_node(element: &str) -> Result<&str, &'static str> {
    let mut found = None;
    for pair in split_unquoted(element, b';')? {
        let Some((name, value)) = pair.split_once('=') else { continue };
        if !name.trim().eq_ignore_ascii_case("for") {
            continue;
        }
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        if found.replace(quoted.unwrap_or(value)).is_some() {
            return Err("an element has more than one `for`");
        }
    }
    found.ok_or("an element has no `for`")
}

/// Parses an IP address with or without brackets and port. Returns `None` if it is invalid.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.bytes().filter(|byte| *byte == b':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn proxies() -> TrustedProxies {
        let proxy = |text: &str| TrustedProxy::try_from(text.to_owned()).expect("a proxy");
        TrustedProxies::new(&["10.0.0.0/8", "2001:db8::1"].map(proxy))
    }

    /// Returns the client that the forwarding headers of a proxy name. Returns `proxy` if they name none, and
    /// `refused` if they are invalid.
    fn client_address(lines: &[(&'static str, &str)]) -> String {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        let proxy = Peer::Tcp(([10, 0, 0, 1], 4_000).into());
        match proxies().sender(proxy, &lines.iter().map(header).collect()) {
            Ok(Peer::Forwarded(address)) => address.to_string(),
            Ok(peer) if peer == proxy => "proxy".into(),
            Ok(peer) => peer.to_string(),
            Err(_) => "refused".into(),
        }
    }

    #[test]
    fn the_client_is_the_rightmost_untrusted_address() {
        for (list, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("203.0.113.9, 192.0.2.1", "192.0.2.1"),
            ("garbage, 192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, 10.0.0.2,10.9.9.9", "192.0.2.1"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("192.0.2.1:5555", "192.0.2.1"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]:80, [2001:db8::1]", "2001:db8::7"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, unknown", "refused"),
            ("192.0.2.1, 10.0.0", "refused"),
            ("", "refused"),
            (",", "refused"),
        ] {
            assert_eq!(client_address(&[(X_FORWARDED_FOR, list)]), expected, "{list}");
        }
        for (elements, expected) in [
            ("for=192.0.2.1", "192.0.2.1"),
            ("For=\"192.0.2.1:80\";proto=https;by=203.0.113.43", "192.0.2.1"),
            ("for=203.0.113.9, for=192.0.2.1", "192.0.2.1"),
            ("for=\"[2001:db8::7]:4711\", for=10.0.0.2", "2001:db8::7"),
            ("for=192.0.2.1;host=\"a,b;for=1.2.3.4\"", "192.0.2.1"),
            ("for=192.0.2.1, for=_hidden", "refused"),
            ("for=192.0.2.1, proto=https", "refused"),
            ("for=192.0.2.1;for=192.0.2.2", "refused"),
            ("for=\"x, for=192.0.2.1", "refused"),
        ] {
            assert_eq!(client_address(&[(FORWARDED, elements)]), expected, "{elements}");
        }
    }

    #[test]
    fn conflicting_or_excessive_forwarding_headers_are_refused() {
        let forwarded = (FORWARDED, "for=203.0.113.9");
        assert_eq!(client_address(&[(X_FORWARDED_FOR, "192.0.2.1"), forwarded]), "refused");
        assert_eq!(client_address(&[(X_FORWARDED_FOR, "203.0.113.9"), forwarded]), "203.0.113.9");
        assert_eq!(
            client_address(&[(X_FORWARDED_FOR, "203.0.113.9"), (X_FORWARDED_FOR, "192.0.2.1")]),
            "192.0.2.1"
        );
        assert_eq!(client_address(&[(X_FORWARDED_FOR, &"1.1.1.1,".repeat(1_000))]), "refused");
        assert_eq!(client_address(&[(X_FORWARDED_FOR, &"10.0.0.1,".repeat(HOPS_MAX + 1))]), "refused");
        assert_eq!(client_address(&[]), "proxy");
    }

    const USER: Peer = Peer::Unix { uid: 1, gid: 1, pid: None, connection: None };

    #[test]
    fn only_trusted_proxies_may_name_clients() {
        let headers = HeaderMap::from_iter([(
            HeaderName::from_static(X_FORWARDED_FOR),
            HeaderValue::from_static("192.0.2.1"),
        )]);
        for peer in [Peer::Tcp(([11, 0, 0, 1], 1).into()), USER] {
            assert_eq!(proxies().sender(peer, &headers), Ok(peer));
        }
        let unix = TrustedProxies::new(&[TrustedProxy::Unix]);
        let sender = unix.sender(USER, &headers);
        assert_eq!(sender, Ok(Peer::Forwarded([192, 0, 2, 1].into())));
    }

    #[test]
    fn invalid_trusted_proxies_are_rejected() {
        for wrong in ["", "proxy.example.com", "10.0.0.0/33", "0.0.0.0/0", "::/0", "UNIX", "10.0.0.1:80"] {
            assert!(TrustedProxy::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
