//! Lets a browser of this host in without a secret in its address.
//!
//! A command that opens a browser gives it an address as an argument, and every account of the host can read the
//! arguments of all processes. So the address has no secret: the first request for it that the kernel attributes to the
//! own account is let in, and the answer tells the browser the rest.

use std::time::{Duration, Instant};

use http::HeaderMap;
use parking_lot::Mutex;

use crate::log_throttle::LogThrottle;
use crate::tcp_connection::TcpConnection;

/// The path of the address that a browser opens.
pub const OPEN_PATH: &str = "/open";
/// How long the request of the browser is awaited.
const LIFETIME: Duration = Duration::from_secs(60);
/// Headers that proxies add to requests. Behind a proxy, everybody's requests come from the account of the proxy.
const PROXY_HEADERS: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Lets in one request of a browser that this process opens. `T` is what the browser gets.
#[derive(Debug)]
pub struct BrowserOpening<T> {
    /// What the next request gets, and until when. `None` if none is awaited.
    awaited: Mutex<Option<(T, Instant)>>,
    refusals: LogThrottle,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningRefusal {
    #[error("no browser is being opened, or another request was first")]
    NotAwaited,
    #[error("a web page or a proxy sent this request")]
    NotOpened,
    #[error(
        "this request is not known to come from a program of the account that runs Lockhouse, outside of a server's sandbox"
    )]
    OtherAccount,
}

impl<T> Default for BrowserOpening<T> {
    fn default() -> Self {
        Self { awaited: Mutex::default(), refusals: LogThrottle::default() }
    }
}

impl<T> BrowserOpening<T> {
    /// Lets in one request within the next 60 s, which gets `value`.
    pub fn begin(&self, value: T) {
        *self.awaited.lock() = Some((value, Instant::now() + LIFETIME));
    }

    /// Lets this request in, and no later one. A request that is refused does not count. `connection` is `None` for a
    /// Unix domain socket.
    ///
    /// # Errors
    /// [`OpeningRefusal`] if this is not the request of the browser.
    pub fn admit(&self, connection: Option<TcpConnection>, headers: &HeaderMap) -> Result<T, OpeningRefusal> {
        let mut awaited = self.awaited.lock();
        awaited.take_if(|(_, until)| Instant::now() >= *until);
        if awaited.is_none() {
            return Err(OpeningRefusal::NotAwaited);
        }
        if !is_opened_address(headers) {
            return Err(OpeningRefusal::NotOpened);
        }
        if !connection.is_some_and(|connection| connection.is_from_own_account()) {
            let reason = OpeningRefusal::OtherAccount;
            self.refusals.write(|times| {
                tracing::warn!("refused a request while a browser is being opened: {reason}{times}")
            });
            return Err(reason);
        }
        awaited.take().map(|(value, _)| value).ok_or(OpeningRefusal::NotAwaited)
    }
}

/// Whether a person or a program has opened the address itself: no web page led to it (`Sec-Fetch-Site`, which browsers
/// send to `localhost`), and no proxy passed the request on.
fn is_opened_address(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().all(|site| site == "none")
        && !PROXY_HEADERS.iter().any(|name| headers.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn one_request_of_the_own_account_is_let_in() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (accepted, _) = accepted.expect("a connection");
        let connection = Some(TcpConnection::of(&accepted).expect("open"));
        let opening = BrowserOpening::<u8>::default();
        let none = HeaderMap::new();
        assert_eq!(opening.admit(connection, &none), Err(OpeningRefusal::NotAwaited));
        opening.begin(7);
        assert_eq!(opening.admit(None, &none), Err(OpeningRefusal::OtherAccount));
        for (name, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("via", "1.1 x"),
            ("x-forwarded-for", "10.0.0.1"),
        ] {
            let headers =
                HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            assert_eq!(
                opening.admit(connection, &headers),
                Err(OpeningRefusal::NotOpened),
                "{name}: {value}"
            );
        }
        let opened = HeaderMap::from_iter([(
            HeaderName::from_static("sec-fetch-site"),
            HeaderValue::from_static("none"),
        )]);
        assert_eq!(opening.admit(connection, &opened), Ok(7));
        assert_eq!(opening.admit(connection, &opened), Err(OpeningRefusal::NotAwaited));
        opening.begin(7);
        drop(client);
        assert_eq!(opening.admit(connection, &opened), Err(OpeningRefusal::OtherAccount), "closed");
        *opening.awaited.lock() = Some((7, Instant::now()));
        assert_eq!(opening.admit(connection, &opened), Err(OpeningRefusal::NotAwaited), "too late");
    }
}
