//! For whom a request is meant, and which web page it is from.
//!
//! A page of a stranger that a browser shows can send requests here, and with a name of its own that leads to this address
//! (DNS rebinding) it could read the answers as well. Such a request carries that name as its host, and the page as its origin.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lockhouse_base::telemetry;
use serde::Deserialize;
use thiserror::Error;

use super::Via;

/// A name by which this door may be asked for, `[http] hosts`: of one port, or of every port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostName {
    name: String,
    port: Option<u16>,
}

/// A web page that may come in, `[http] origins`: `https://NAME` or `https://NAME:PORT`, as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PageOrigin(String);

/// What is written in `hosts` or `origins` is none.
#[derive(Debug, Error)]
pub enum InvalidWebName {
    #[error("{0:?} is no host: write NAME or NAME:PORT, such as mcp.example.com")]
    Host(String),
    #[error("{0:?} is no origin: write https://NAME or http://NAME:PORT, without a path")]
    Origin(String),
}

impl TryFrom<String> for HostName {
    type Error = InvalidWebName;

    fn try_from(written: String) -> Result<Self, InvalidWebName> {
        let told = || InvalidWebName::Host(written.clone());
        let authority = Authority::from_str(&written).map_err(|_| told())?;
        let is_plain = !written.contains('@') && !authority.host().is_empty() && !written.contains('*');
        let port = port(&authority).map_err(|()| told())?;
        is_plain.then(|| Self { name: name(&authority), port }).ok_or_else(told)
    }
}

impl TryFrom<String> for PageOrigin {
    type Error = InvalidWebName;

    fn try_from(written: String) -> Result<Self, InvalidWebName> {
        let told = || InvalidWebName::Origin(written.clone());
        let (scheme, authority) = written.split_once("://").ok_or_else(told)?;
        let is_web = scheme == "http" || scheme == "https";
        HostName::try_from(authority.to_owned()).map_err(|_| told())?;
        is_web.then(|| Self(written.to_lowercase())).ok_or_else(told)
    }
}

/// What is let in.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) hosts: Vec<HostName>,
    pub(super) origins: Vec<PageOrigin>,
}

/// Lets a request pass that is meant for this door, and not from a stranger's page.
pub(super) async fn check(State(names): State<Arc<Names>>, request: Request, next: Next) -> Response {
    let via = request.extensions().get::<Via>().copied();
    let checked = match via {
        // Nothing but a program of this host comes over a Unix domain socket: a browser cannot.
        Some(via @ Via { local: None, .. }) => names.origin(request.headers(), None, via),
        Some(via) => asked(&request)
            .and_then(|authority| names.host(&authority, via).map(|()| authority))
            .and_then(|authority| names.origin(request.headers(), Some(&authority), via)),
        None => Err((StatusCode::INTERNAL_SERVER_ERROR, "the connection is not known".to_owned())),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err((status, words)) => {
            telemetry::refused(if status == StatusCode::FORBIDDEN { "origin" } else { "host" });
            (status, words).into_response()
        }
    }
}

type Refusal = (StatusCode, String);

/// The host that a request names: one, and the same wherever it is named.
fn asked(request: &Request) -> Result<Authority, Refusal> {
    let bad = |words: &str| (StatusCode::BAD_REQUEST, words.to_owned());
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let of_header = match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(bad("there are several Host headers")),
        (None, None) => None,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(|host| Authority::from_str(host).ok());
            Some(
                host.filter(|host| !host.as_str().contains('@'))
                    .ok_or_else(|| bad("the Host header is no host"))?,
            )
        }
    };
    match (request.uri().authority().cloned(), of_header) {
        (Some(of_target), Some(of_header)) if of_target != of_header => {
            Err(bad("the Host header and the URL name different hosts"))
        }
        (Some(authority), _) | (None, Some(authority)) => Ok(authority),
        (None, None) => Err(bad("the Host header is missing")),
    }
}

impl Names {
    /// The address at which the request came in, `localhost` if that is a loopback address, and what is configured.
    fn host(&self, asked: &Authority, via: Via) -> Result<(), Refusal> {
        let told = || {
            (
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "{asked} is not a name of this server: use its address, or have the name added to hosts in [http] of its configuration"
                ),
            )
        };
        let (name, port) = (name(asked), port(asked).map_err(|()| told())?);
        let is_configured = self.hosts.iter().any(|host| {
            host.name == name && host.port.is_none_or(|allowed| allowed == port.unwrap_or(default_port(via)))
        });
        if is_configured || is_address(via, &name, port) { Ok(()) } else { Err(told()) }
    }

    /// None, as programs have it, a page of this server's own, or one that is configured.
    fn origin(&self, headers: &HeaderMap, host: Option<&Authority>, via: Via) -> Result<(), Refusal> {
        let scheme = if via.is_tls { "https" } else { "http" };
        let is_own = |origin: &str| {
            let authority = origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
            authority.and_then(|own| Authority::from_str(own).ok()).is_some_and(|own| {
                host == Some(&own) || port(&own).is_ok_and(|port| is_address(via, &name(&own), port))
            })
        };
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default().to_lowercase();
            if !is_own(&origin) && !self.origins.iter().any(|allowed| allowed.0 == origin) {
                let words = "pages of this origin may not come in: origins in [http] of the server's configuration lists those that may";
                return Err((StatusCode::FORBIDDEN, words.to_owned()));
            }
        }
        Ok(())
    }
}

/// Whether that is the address of this host at which a request came in, or `localhost` where that is a loopback address.
fn is_address(via: Via, name: &str, port: Option<u16>) -> bool {
    via.local.is_some_and(|local| {
        let address = local.ip().to_canonical();
        let is_it = name.parse().is_ok_and(|named: IpAddr| named.to_canonical() == address)
            || (address.is_loopback() && name == "localhost");
        is_it && port.unwrap_or(default_port(via)) == local.port()
    })
}

fn default_port(via: Via) -> u16 {
    if via.is_tls { 443 } else { 80 }
}

/// In lower case, IPv6 without brackets, without the dot that ends a whole name.
fn name(authority: &Authority) -> String {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// An authority may end in something else than a number, which is no port.
fn port(authority: &Authority) -> Result<Option<u16>, ()> {
    let rest = &authority.as_str()[authority.as_str().rfind(']').map_or(0, |end| end + 1)..];
    match rest.rsplit_once(':') {
        None => Ok(None),
        Some((_, port)) => port.parse().map(Some).map_err(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let host = |written: &str| HostName::try_from(written.to_owned()).expect("a host");
        let origin = PageOrigin::try_from("https://app.example.com".to_owned()).expect("an origin");
        Names { hosts: vec![host("mcp.example.com"), host("Proxy:8443")], origins: vec![origin] }
    }

    fn host(asked: &str, local: &str) -> bool {
        let via = Via { local: Some(local.parse().expect("an address")), is_tls: false };
        names().host(&asked.parse().expect("an authority"), via).is_ok()
    }

    #[test]
    fn a_host_is_the_address_or_configured() {
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
    fn an_origin_is_none_or_our_own_or_configured() {
        let via = Via { local: Some(([127, 0, 0, 1], 7300).into()), is_tls: false };
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
            assert_eq!(names().origin(&headers, Some(&authority), via).is_ok(), passes, "{origin}");
        }
        assert!(names().origin(&HeaderMap::new(), None, via).is_ok());
    }

    #[test]
    fn what_is_no_host_or_origin_is_refused_in_the_configuration() {
        for wrong in ["", "https://x", "a b", "u@x", "x:port", "*.example.com", "x/y"] {
            assert!(HostName::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "ftp://x", "https://", "https://x/", "https://*", "null"] {
            assert!(PageOrigin::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
