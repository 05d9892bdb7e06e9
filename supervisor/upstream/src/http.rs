//! Connections over HTTP to an upstream server: the HTTP client, headers and proxies that its configuration asks for.

mod authorized_sender;
mod redirects;
mod runtime_thread;

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue};
use lockhouse_mcp::client::http::{
    DEPRECATED, EITHER, EVENTS, HttpConnection, HttpExchange, HttpLimits, PostAddress, SessionRenewals,
    SseTransport, StreamableHttp,
};
use lockhouse_mcp::client::{FailureSignal, HttpError, HttpErrorKind};
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::sync::{Notify, watch};

use self::authorized_sender::AuthorizedSender;
use super::auth::TokenProvider;
use super::definition::{HttpEndpoint, HttpTransport, Proxy, ServerLimits};
use super::http_proxy::with_proxy;

/// Maximum time for connecting to a server over HTTP.
/// Bound: upstream servers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unused TCP connection to a server is kept open. Servers on Node.js close an unused connection after five
/// seconds, and a request that is sent at that moment would be lost.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// Interval of TCP keepalive probes, which detect peers that vanished.
const KEEPALIVE: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
const PROXY_VARIABLES: [&str; 6] =
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
/// HTTP headers that Lockhouse sets. Connecting to a server whose configuration sets one of them fails.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];
/// Opens a connection over streamable HTTP to an upstream server. Also returns the signal that reports when the connection has
/// failed. `renewals` limits how often a lost session is replaced; `changed` is notified when one is.
pub(super) fn open_streamable(
    endpoint: &HttpEndpoint,
    limits: &ServerLimits,
    authority: TokenProvider,
    renewals: SessionRenewals,
    changed: Arc<Notify>,
) -> Result<(HttpConnection, FailureSignal), HttpError> {
    if endpoint.url.path().trim_end_matches('/').ends_with("/sse") {
        return Err(unusable(DEPRECATED));
    }
    let exchange = http_exchange(endpoint, authority)?;
    let failure_signal = exchange.failure_signal.clone();
    let runtime = runtime()?;
    Ok((StreamableHttp::open(exchange, http_limits(limits), renewals, changed, runtime), failure_signal))
}

/// Opens a connection over HTTP+SSE to an upstream server. Also returns the signal that reports when the connection has failed,
/// and the URL to which messages are posted. `renewals` limits how often a lost session is replaced.
pub(super) fn open_sse(
    endpoint: &HttpEndpoint,
    limits: &ServerLimits,
    authority: TokenProvider,
    renewals: SessionRenewals,
) -> Result<(HttpConnection, FailureSignal, watch::Receiver<PostAddress>), HttpError> {
    let exchange = http_exchange(endpoint, authority)?;
    let failure_signal = exchange.failure_signal.clone();
    let (connection, address) = SseTransport::open(exchange, http_limits(limits), renewals, runtime()?);
    Ok((connection, failure_signal, address))
}

fn http_limits(limits: &ServerLimits) -> HttpLimits {
    HttpLimits { message_bytes_max: limits.message_bytes_max, calls_max: limits.calls_max }
}

fn unusable(reason: impl Into<String>) -> HttpError {
    HttpError::new(HttpErrorKind::Unusable, reason, "")
}

fn http_exchange(endpoint: &HttpEndpoint, authority: TokenProvider) -> Result<HttpExchange, HttpError> {
    let (http, failure_signal) = (http_client(endpoint)?, FailureSignal::default());
    let (url, host_and_port) = (endpoint.url.clone(), host_and_port(endpoint));
    let sender = Box::new(AuthorizedSender::new(authority, host_and_port.clone(), failure_signal.clone()));
    Ok(HttpExchange { http, url, host_and_port, headers: headers(endpoint)?, sender, failure_signal })
}

fn runtime() -> Result<tokio::runtime::Handle, HttpError> {
    runtime_thread::handle().map_err(|error| unusable(format!("cannot start a thread: {error}")))
}

/// Sends a request without a token and returns the response, which shows whether the server requires authorization: a
/// `server/discover` request, or the request for the event stream of HTTP+SSE.
pub(super) async fn probe(endpoint: &HttpEndpoint) -> Result<reqwest::Response, HttpError> {
    let http = http_client(endpoint)?;
    let request = match endpoint.transport {
        HttpTransport::Streamable => discover_request(&http, endpoint),
        HttpTransport::Sse => http.get(endpoint.url.clone()).header(ACCEPT, EVENTS),
    };
    let request = request.headers(headers(endpoint)?).timeout(PROBE_TIMEOUT);
    request.send().await.map_err(|error| HttpError::from_reqwest(&error, &host_and_port(endpoint)))
}

fn discover_request(http: &reqwest::Client, endpoint: &HttpEndpoint) -> reqwest::RequestBuilder {
    let version = ProtocolVersion::V_2026_07_28;
    let body = json!({
        "jsonrpc": "2.0", "id": 0, "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": version.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "lockhouse", "version": env!("CARGO_PKG_VERSION")},
        }},
    });
    let request = http.post(endpoint.url.clone());
    let request =
        request.header("mcp-protocol-version", version.as_str()).header("mcp-method", "server/discover");
    request.header(ACCEPT, EITHER).json(&body)
}

fn http_client(endpoint: &HttpEndpoint) -> Result<reqwest::Client, HttpError> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("lockhouse/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .pool_idle_timeout(IDLE_CONNECTION)
        .referer(false)
        .redirect(redirects::policy(endpoint));
    let client = with_proxy(builder, endpoint).and_then(reqwest::ClientBuilder::build);
    client.map_err(|error| unusable(format!("cannot set up HTTP: {error}")))
}

/// Returns `HOST:PORT` of the endpoint for error messages. If an environment variable sets a proxy for it, `(VARIABLE
/// is set)` follows.
fn host_and_port(endpoint: &HttpEndpoint) -> String {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let obeys = endpoint.proxy == Proxy::Environment && !endpoint.is_on_this_host();
    match PROXY_VARIABLES.iter().find(|name| obeys && is_set(name)) {
        Some(name) => format!("{} ({name} is set)", endpoint.host_and_port()),
        None => endpoint.host_and_port(),
    }
}

/// Why a header from an upstream server's configuration cannot be sent.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("its header {0:?} is one that Lockhouse sets itself; take it out of `headers`")]
    Own(String),
    #[error("its header {0:?} has a name that HTTP does not allow")]
    Name(String),
    #[error("its header {0:?} has a value that HTTP does not allow")]
    Value(String),
}

impl From<HeaderError> for HttpError {
    fn from(error: HeaderError) -> Self {
        Self::new(HttpErrorKind::Unusable, error.to_string(), "")
    }
}

fn headers(endpoint: &HttpEndpoint) -> Result<HeaderMap, HeaderError> {
    let header = |(name, value): (&String, &String)| {
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(HeaderError::Own(name.clone()));
        }
        let key = HeaderName::try_from(name).map_err(|_| HeaderError::Name(name.clone()))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| HeaderError::Value(name.clone()))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    endpoint.headers.iter().map(header).collect()
}
