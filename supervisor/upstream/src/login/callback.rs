//! The HTTP server of a login, at `localhost`. It redirects the browser that a command opens to the authorization server, and
//! waits for the redirect back: the request with the login's `state` parameter.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use lockhouse_base::browser_opening::{BrowserOpening, OPEN_PATH};
use lockhouse_base::http_checks::checked_stream::HeadCheckedStream;
use lockhouse_base::http_checks::host_check::{ConnectionInfo, HostCheck, HostFault, requested_host};
use lockhouse_base::localhost_listener::LocalhostListener;
use lockhouse_base::tcp_connection::TcpConnection;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

const PATH: &str = "/callback";
/// The maximum size in bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long a connection may take. The limit is needed because browsers open connections in advance and send nothing on
/// them.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 16;

/// The server for the browser during a login.
pub struct Callback {
    listener: LocalhostListener,
    address: String,
    /// Lets in the browser that the command opens, which gets the address of the authorization server.
    opening: BrowserOpening<Url>,
}

/// The answer to a request of the browser.
struct BrowserResponse {
    status: StatusCode,
    words: String,
    /// The address to which the browser is redirected.
    location: Option<Url>,
    /// The address of the request, if it is the redirect back that completes the login.
    redirect: Option<String>,
}

impl BrowserResponse {
    fn words(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), location: None, redirect: None }
    }
}

impl Callback {
    /// Listens on `port` of the loopback addresses, or on any free port if `port` is 0.
    pub async fn listen(port: u16) -> std::io::Result<Self> {
        let listener = LocalhostListener::bind(port).await?;
        let address = format!("http://127.0.0.1:{}{PATH}", listener.port());
        Ok(Self { listener, address, opening: BrowserOpening::default() })
    }

    /// Returns the address to which the authorization server redirects the browser.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Redirects one browser of this account, within 60 s, to this address.
    pub fn await_browser(&self, to: &Url) {
        self.opening.begin(to.clone());
    }

    /// Waits for the redirect whose `state` parameter is `state`, and returns its full address.
    pub async fn wait_for_redirect(&self, state: &str) -> String {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    if let Ok(stream) = accepted {
                        connections.push(timeout(CONNECTION_TIMEOUT, self.serve(stream, state)));
                    }
                }
                Some(Ok(Some(address))) = connections.next(), if !connections.is_empty() => return address,
            }
        }
    }

    /// Answers the request of a connection. Returns its address if it is the redirect that completes the login.
    async fn serve(&self, stream: TcpStream, state: &str) -> Option<String> {
        let ends = TcpConnection::of(&stream).ok()?;
        let redirect = Arc::new(Mutex::new(None));
        let service = service_fn(|request: Request<Incoming>| {
            let mut answer = self.answer(&request, ends, state);
            *redirect.lock() = answer.redirect.take();
            std::future::ready(Ok::<_, Infallible>(response(answer)))
        });
        let stream = HeadCheckedStream::new(stream, HEAD_BYTES_MAX);
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = serving.await {
            tracing::debug!("a connection to the login has ended: {error}");
        }
        redirect.lock().take()
    }

    fn answer<B>(&self, request: &Request<B>, ends: TcpConnection, state: &str) -> BrowserResponse {
        if let Err(fault) = check_host(request, ends) {
            return BrowserResponse::words(fault.status(), fault.to_string());
        }
        if request.method() == Method::GET && request.uri().path() == OPEN_PATH {
            return match self.opening.admit(Some(ends), request.headers()) {
                Ok(to) => BrowserResponse {
                    location: Some(to),
                    ..BrowserResponse::words(StatusCode::SEE_OTHER, "")
                },
                Err(refusal) => {
                    let words = format!("{refusal}: open the address that the terminal shows");
                    BrowserResponse::words(StatusCode::FORBIDDEN, words)
                }
            };
        }
        match matching_query(request, state) {
            Some(query) => BrowserResponse {
                redirect: Some(format!("{}?{query}", self.address)),
                ..BrowserResponse::words(
                    StatusCode::OK,
                    "Lockhouse has received the answer. You can close this page; the terminal shows the result.",
                )
            },
            None => BrowserResponse::words(
                StatusCode::NOT_FOUND,
                "This request does not belong to the login in progress.",
            ),
        }
    }
}

fn check_host<B>(request: &Request<B>, ends: TcpConnection) -> Result<(), HostFault> {
    let own_address_only = HostCheck { hosts: Vec::new(), origins: Vec::new() };
    let host = requested_host(request.uri(), request.headers())?;
    own_address_only.check_host_name(&host, ConnectionInfo { local: Some(ends.local), is_tls: false })
}

fn response(answer: BrowserResponse) -> Response<String> {
    const HEADERS: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = Response::builder().status(answer.status);
    for (name, value) in HEADERS {
        response = response.header(name, value);
    }
    if let Some(to) = answer.location {
        response = response.header(header::LOCATION, to.as_str());
    }
    let words = answer.words.replace('&', "&amp;").replace('<', "&lt;");
    let page = format!("<!doctype html><meta charset=utf-8><title>Lockhouse</title><p>{words}</p>\n");
    response.body(page).unwrap_or_default()
}

/// Returns the query string of a GET request for the callback path if its `state` parameter is `state`. `None` for any
/// other request.
fn matching_query<B>(request: &Request<B>, state: &str) -> Option<String> {
    if request.method() != Method::GET || request.uri().path() != PATH {
        return None;
    }
    let query = request.uri().query()?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.any(|(key, value)| key == "state" && value == state).then(|| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_with_the_state_completes_the_login() {
        for (method, target, answer) in [
            ("GET", "/callback?code=a&state=s%201", Some("code=a&state=s%201")),
            ("GET", "/callback?error=denied&state=s+1", Some("error=denied&state=s+1")),
            ("GET", "/callback?code=a&state=other", None),
            ("GET", "/callback2?code=a&state=s%201", None),
            ("GET", "/favicon.ico", None),
            ("POST", "/callback?code=a&state=s%201", None),
        ] {
            let request = Request::builder().method(method).uri(target).body(()).expect("a request");
            assert_eq!(matching_query(&request, "s 1").as_deref(), answer, "{method} {target}");
        }
    }
}
