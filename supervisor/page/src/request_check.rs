//! Checks that a request comes from the page itself, and not from another web page in the same browser.
//!
//! A web page of an attacker can make a browser send requests to this server. If the attacker's domain name resolves to
//! the address of this server (DNS rebinding), such a page can even read the responses. Its requests carry the
//! attacker's domain in `Host`, and its origin in `Origin` and `Sec-Fetch-Site`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lockhouse_base::http_checks::host_check::{
    ConnectionInfo, HostCheck, HostFault, is_loopback_name, requested_host,
};
use lockhouse_base::tcp_connection::TcpConnection;

use super::error::{ActionError, ErrorCode};

/// The beginning of the paths of requests for data and actions.
pub(super) const API_PREFIX: &str = "/api/";

/// Whether the browser has sent a request over TLS, to a proxy of this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsTls(pub(super) bool);

/// Middleware that rejects requests that the page itself would not send.
pub(super) async fn check(State(hosts): State<Arc<HostCheck>>, mut request: Request, next: Next) -> Response {
    let ends = request.extensions().get::<TcpConnection>().copied();
    match check_head(request.uri(), request.headers(), &hosts, ends) {
        Ok(is_tls) => {
            request.extensions_mut().insert(is_tls);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

impl From<HostFault> for ActionError {
    fn from(fault: HostFault) -> Self {
        match fault {
            HostFault::Ambiguous(words) => Self::new(ErrorCode::Invalid, words),
            HostFault::OtherHost(_) => Self::new(
                ErrorCode::WrongHost,
                "this is not the host of the page: use its address as it was printed",
            ),
            HostFault::OtherOrigin => Self::new(ErrorCode::Forbidden, "another web page sent this request"),
        }
    }
}

/// Checks the host of a request, and for data and actions that the page itself has sent it. `ends` is `None` on a Unix
/// domain socket.
fn check_head(
    uri: &Uri,
    headers: &HeaderMap,
    hosts: &HostCheck,
    ends: Option<TcpConnection>,
) -> Result<IsTls, ActionError> {
    let host = requested_host(uri, headers)?;
    let is_tls = is_over_tls(&host, headers);
    let connection = ConnectionInfo { local: ends.map(|ends| ends.local), is_tls };
    hosts.check_host_name(&host, connection)?;
    // Static files have no data, and a link in another program or page may lead to them.
    if uri.path().starts_with(API_PREFIX) {
        hosts.check_origin(headers, Some(&host), connection)?;
        if headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin") {
            return Err(HostFault::OtherOrigin.into());
        }
    }
    Ok(IsTls(is_tls))
}

/// Whether the browser uses TLS. Under another name than that of the loopback interface it must: its requests cross the
/// network.
fn is_over_tls(host: &Authority, headers: &HeaderMap) -> bool {
    let has_https_origin =
        headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    has_https_origin || !is_loopback_name(host)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use lockhouse_base::http_checks::host_check::HostName;

    use super::*;

    /// Checks a request with these headers. Returns whether it came over TLS.
    fn outcome(
        headers: &[(&'static str, &'static str)],
        path: &'static str,
        is_unix: bool,
    ) -> Result<bool, ErrorCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let proxy = HostName::try_from("page.example.com".to_owned()).expect("a host");
        let hosts = if is_unix { HostName::any_loopback() } else { vec![proxy] };
        let hosts = HostCheck { hosts, origins: Vec::new() };
        let ends =
            TcpConnection { local: ([127, 0, 0, 1], 4000).into(), peer: ([127, 0, 0, 1], 5000).into() };
        check_head(&Uri::from_static(path), &map, &hosts, (!is_unix).then_some(ends))
            .map(|is_tls| is_tls.0)
            .map_err(|error| error.code)
    }

    #[test]
    fn only_the_page_itself_may_send_requests() {
        let host = ("host", "127.0.0.1:4000");
        for path in ["/", "/api/audit"] {
            for own in ["127.0.0.1:4000", "localhost:4000"] {
                assert_eq!(outcome(&[("host", own)], path, false), Ok(false), "{own}");
            }
            for wrong in
                ["evil.test", "127.0.0.1", "127.0.0.1:4001", "evil.test:4000", "127.0.0.1:4000.evil.test"]
            {
                assert_eq!(outcome(&[("host", wrong)], path, false), Err(ErrorCode::WrongHost), "{wrong}");
            }
            assert_eq!(outcome(&[("host", "")], path, false), Err(ErrorCode::Invalid));
            assert_eq!(outcome(&[], path, false), Err(ErrorCode::Invalid));
            assert_eq!(outcome(&[host, host], path, false), Err(ErrorCode::Invalid));
        }
        let absolute = "http://evil.test/api/audit";
        assert_eq!(outcome(&[host], absolute, false), Err(ErrorCode::Invalid));
        assert_eq!(outcome(&[("host", "evil.test")], absolute, false), Err(ErrorCode::WrongHost));
        for own in ["http://127.0.0.1:4000", "http://localhost:4000"] {
            assert_eq!(outcome(&[host, ("origin", own)], "/api/audit", false), Ok(false), "{own}");
        }
        for origin in
            ["http://evil.test", "null", "http://127.0.0.1", "http://localhost:4001", "127.0.0.1:4000", ""]
        {
            let found = outcome(&[host, ("origin", origin)], "/api/audit", false);
            assert_eq!(found, Err(ErrorCode::Forbidden), "{origin}");
        }
        assert_eq!(outcome(&[host, ("sec-fetch-site", "same-origin")], "/api/audit", false), Ok(false));
        for site in ["cross-site", "same-site", "none"] {
            let headers = [host, ("sec-fetch-site", site)];
            assert_eq!(outcome(&headers, "/api/audit", false), Err(ErrorCode::Forbidden), "{site}");
            assert_eq!(outcome(&headers, "/", false), Ok(false), "a link leads to the page");
        }
    }

    #[test]
    fn requests_to_a_name_of_the_network_use_tls() {
        let host = ("host", "page.example.com");
        for (origin, expected) in [
            ("https://page.example.com", Ok(true)),
            ("http://page.example.com", Err(ErrorCode::Forbidden)),
            ("https://other.example.com", Err(ErrorCode::Forbidden)),
        ] {
            assert_eq!(outcome(&[host, ("origin", origin)], "/api/login", false), expected, "{origin}");
        }
        let local = [("host", "localhost:4000"), ("origin", "https://localhost:4000")];
        assert_eq!(outcome(&local, "/api/login", false), Ok(true), "a proxy of this host");
    }

    #[test]
    fn a_forwarded_socket_is_reached_by_loopback_names_alone() {
        for host in ["localhost:8080", "127.0.0.1:1", "[::1]:8080", "localhost", "[::1]"] {
            assert_eq!(outcome(&[("host", host)], "/", true), Ok(false), "{host}");
        }
        for host in ["evil.test:8080", "localhost.evil.test:80", "localhost:x", "127.0.0.1.evil.test"] {
            assert_eq!(outcome(&[("host", host)], "/", true), Err(ErrorCode::WrongHost), "{host}");
        }
    }
}
