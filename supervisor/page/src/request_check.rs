//! Checks that a request comes from the page itself, and not from another web page in the same browser.
//!
//! A web page of an attacker can make a browser send requests to this server. If the attacker's domain name resolves to
//! the address of this server (DNS rebinding), such a page can even read the responses. Its requests carry the
//! attacker's domain in `Host`, and its origin in `Origin` and `Sec-Fetch-Site`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{ActionError, ErrorCode};

/// The beginning of the paths of requests for data and actions.
pub(super) const API_PREFIX: &str = "/api/";

/// The hosts under which a browser reaches the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PermittedHosts {
    /// Exactly these values of `Host`.
    Exactly(Vec<String>),
    /// A loopback name with any port, or without one: a Unix domain socket is reached through a forwarded port, whose
    /// number only the person knows.
    LoopbackWithAnyPort,
}

impl PermittedHosts {
    fn permits(&self, host: &str) -> bool {
        match self {
            Self::Exactly(hosts) => hosts.iter().any(|permitted| permitted == host),
            Self::LoopbackWithAnyPort => {
                let name = match host.rsplit_once(':') {
                    Some((name, port)) if port.parse::<u16>().is_ok() => name,
                    _ => host,
                };
                ["localhost", "127.0.0.1", "[::1]"].contains(&name)
            }
        }
    }
}

/// Middleware that rejects requests that the page itself would not send.
pub(super) async fn check(
    State(hosts): State<Arc<PermittedHosts>>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = request.uri().path().starts_with(API_PREFIX);
    match check_headers(request.headers(), &hosts, is_api) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Returns the only value of a header; `None` if the header is missing.
///
/// # Errors
/// If there are several values, or the value is not text.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ActionError> {
    let mut values = headers.get_all(name).iter();
    let invalid = || ActionError::new(ErrorCode::Invalid, format!("the header {name} is invalid"));
    let value = values.next().map(|value| value.to_str().map_err(|_| invalid())).transpose()?;
    if values.next().is_some() { Err(invalid()) } else { Ok(value) }
}

fn check_headers(headers: &HeaderMap, hosts: &PermittedHosts, is_api: bool) -> Result<(), ActionError> {
    let host =
        single(headers, header::HOST.as_str())?.filter(|host| hosts.permits(host)).ok_or_else(|| {
            ActionError::new(
                ErrorCode::WrongHost,
                "this is not the host of the page: use its address as it was printed",
            )
        })?;
    if !is_api {
        // Static files have no data, and a link in another program or page may lead to them.
        return Ok(());
    }
    let foreign = || ActionError::new(ErrorCode::Forbidden, "another web page sent this request");
    if let Some(origin) = single(headers, header::ORIGIN.as_str())?
        && origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) != Some(host)
    {
        return Err(foreign());
    }
    match single(headers, "sec-fetch-site")? {
        None | Some("same-origin") => Ok(()),
        Some(_) => Err(foreign()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn outcome(headers: &[(&'static str, &'static str)], is_api: bool) -> Result<(), ErrorCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let hosts = PermittedHosts::Exactly(vec!["127.0.0.1:4000".into(), "localhost:4000".into()]);
        check_headers(&map, &hosts, is_api).map_err(|error| error.code)
    }

    #[test]
    fn only_the_page_itself_may_send_requests() {
        let host = ("host", "127.0.0.1:4000");
        for api in [false, true] {
            assert_eq!(outcome(&[host], api), Ok(()));
            for wrong in
                ["evil.test", "127.0.0.1", "127.0.0.1:4001", "evil.test:4000", "127.0.0.1:4000.evil.test", ""]
            {
                assert_eq!(outcome(&[("host", wrong)], api), Err(ErrorCode::WrongHost), "{wrong}");
            }
            assert_eq!(outcome(&[], api), Err(ErrorCode::WrongHost));
            assert_eq!(outcome(&[host, host], api), Err(ErrorCode::Invalid));
        }
        assert_eq!(outcome(&[host, ("origin", "http://127.0.0.1:4000")], true), Ok(()));
        let foreign =
            ["http://evil.test", "http://localhost:4000", "null", "http://127.0.0.1", "127.0.0.1:4000", ""];
        for origin in foreign {
            assert_eq!(outcome(&[host, ("origin", origin)], true), Err(ErrorCode::Forbidden), "{origin}");
        }
        assert_eq!(outcome(&[host, ("sec-fetch-site", "same-origin")], true), Ok(()));
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(outcome(&[host, ("sec-fetch-site", site)], true), Err(ErrorCode::Forbidden), "{site}");
            assert_eq!(outcome(&[host, ("sec-fetch-site", site)], false), Ok(()), "a link leads to the page");
        }
    }

    #[test]
    fn a_forwarded_socket_is_reached_by_loopback_names_alone() {
        let hosts = PermittedHosts::LoopbackWithAnyPort;
        for host in ["localhost:8080", "127.0.0.1:1", "[::1]:8080", "localhost", "[::1]"] {
            assert!(hosts.permits(host), "{host}");
        }
        for host in ["evil.test:8080", "localhost.evil.test:80", "localhost:x", "127.0.0.1.evil.test", ""] {
            assert!(!hosts.permits(host), "{host}");
        }
    }
}
