//! HTTP transports to an upstream server.
//!
//! For streamable HTTP, the library rmcp implements the protocol: sessions, protocol versions, headers, and resuming of
//! streams. [`client`] and [`exchange`] send rmcp's HTTP requests and limit how much of the responses is read.
//! [`sse_transport`] is the deprecated HTTP+SSE, which rmcp does not implement.

mod backlog_limits;
mod buffer_budget;
mod client;
mod event_stream;
mod exchange;
mod header_parameters;
mod mcp_session;
mod redirects;
mod response_decoder;
mod runtime_thread;
mod sse_parser;
mod sse_transport;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use tokio::sync::Notify;

pub(super) use client::UpstreamHttpClient;
pub(super) use header_parameters::raw as raw_list;
pub(super) use mcp_session::SessionRenewals;
pub(super) use sse_transport::{PostAddress, SseTransport};

use self::exchange::{EVENTS, HttpExchange};
use super::auth::TokenProvider;
use super::definition::{HttpEndpoint, HttpTransport, Proxy, ServerLimits};
use super::http_error::{HttpError, HttpErrorKind};
use super::http_proxy::with_proxy;
use lockhouse_mcp::FailureSignal;

/// Whether results of a server over HTTP+SSE are given to rmcp as raw text. False during the handshake, whose results rmcp
/// must parse. Over streamable HTTP, the request determines it.
pub(super) type RawResults = Arc<AtomicBool>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unused TCP connection to a server is kept open. Servers on Node.js close an unused connection after five
/// seconds, and a request that is sent at that moment would be lost.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// Interval of TCP keepalive probes, which detect peers that vanished.
const KEEPALIVE: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// First delay before an event stream that the server closed is opened again. The delay grows up to `REOPEN_MAX`.
const REOPEN_MIN: Duration = Duration::from_secs(1);
const REOPEN_MAX: Duration = Duration::from_secs(30);
/// The maximum number of concurrent HTTP requests to one server is the sum of two numbers: the configured maximum of
/// its concurrent calls, and this number for all other requests.
const OTHER_REQUESTS_MAX: usize = 16;
const PROXY_VARIABLES: [&str; 6] =
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
/// HTTP headers that Lockhouse or rmcp sets. Connecting to a server whose configuration sets one of them fails.
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
const DEPRECATED: &str = "it speaks HTTP+SSE, a transport that MCP has deprecated; configure its streamable HTTP endpoint, \
                          usually the same URL with /mcp in place of /sse, or write transport = \"sse\" if it has none";

/// Creates the streamable HTTP transport to an upstream server, and the signal that reports when the connection has
/// failed. `renewals` limits how often a lost session is replaced; `changed` is notified when one is.
pub(super) fn transport(
    endpoint: &HttpEndpoint,
    limits: &ServerLimits,
    authority: TokenProvider,
    renewals: SessionRenewals,
    changed: Arc<Notify>,
) -> Result<(StreamableHttpClientTransport<UpstreamHttpClient>, FailureSignal), HttpError> {
    if endpoint.url.path().trim_end_matches('/').ends_with("/sse") {
        return Err(unusable(DEPRECATED));
    }
    let exchange = http_exchange(endpoint, authority)?;
    let failure_signal = exchange.failure_signal.clone();
    let client = UpstreamHttpClient::new(exchange, limits.message_bytes_max, renewals, changed);
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .custom_headers(headers(endpoint)?)
        .max_concurrent_requests(limits.calls_max + OTHER_REQUESTS_MAX);
    let mut reopen = ExponentialBackoff::default();
    (reopen.base_duration, reopen.max_delay) = (REOPEN_MIN, Some(REOPEN_MAX));
    config.retry_config = Arc::new(reopen);
    // The transport runs on the runtime in which it is created.
    let runtime = runtime()?;
    let _entered = runtime.enter();
    Ok((StreamableHttpClientTransport::with_client(client, config), failure_signal))
}

/// Creates the transport HTTP+SSE to an upstream server, and the signal that reports when the connection has failed.
/// `raw` is whether results are given to rmcp as raw text; `renewals` limits how often a lost session is replaced.
pub(super) fn open_sse(
    endpoint: &HttpEndpoint,
    limits: &ServerLimits,
    authority: TokenProvider,
    renewals: SessionRenewals,
    raw: RawResults,
) -> Result<(SseTransport, FailureSignal), HttpError> {
    let exchange = http_exchange(endpoint, authority)?;
    let failure_signal = exchange.failure_signal.clone();
    let headers = headers(endpoint)?.into_iter().collect();
    Ok((SseTransport::open(exchange, headers, limits, renewals, raw, runtime()?), failure_signal))
}

fn unusable(reason: impl Into<String>) -> HttpError {
    HttpError::new(HttpErrorKind::Unusable, reason, "")
}

fn http_exchange(endpoint: &HttpEndpoint, authority: TokenProvider) -> Result<HttpExchange, HttpError> {
    let (http, failure_signal) = (http_client(endpoint)?, FailureSignal::default());
    let (url, host_and_port) = (endpoint.url.clone(), host_and_port(endpoint));
    Ok(HttpExchange { http, url, host_and_port, authority, failure_signal })
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
    let request = request.headers(headers(endpoint)?.into_iter().collect()).timeout(PROBE_TIMEOUT);
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
    request.header(ACCEPT, client::EITHER).json(&body)
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

fn headers(endpoint: &HttpEndpoint) -> Result<HashMap<HeaderName, HeaderValue>, HeaderError> {
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
