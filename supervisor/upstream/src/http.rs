//! Streamable HTTP to a server.
//!
//! rmcp keeps the protocol: sessions, eras, headers, resumed streams. What goes over the wire, and how much of it is taken
//! in, is [`client`]'s and [`exchange`]'s.

mod annotated;
mod answers;
mod client;
mod events;
mod exchange;
mod held;
mod load;
mod stream;
mod threads;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::ProtocolVersion;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;

pub(super) use annotated::raw as raw_list;
pub(super) use client::Client;

use self::exchange::Exchange;
use super::auth::Authority;
use super::broken::Broken;
use super::definition::{HttpEndpoint, ServerLimits};
use super::http_fault::{HttpFault, Kind};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Node closes a connection that nobody has used for five seconds: a request on it would be lost.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// How soon a peer that vanished without a word is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
const REDIRECTS_MAX: usize = 5;
/// A stream that the server closes is opened again: at first after, and at last every.
const REOPEN_MIN: Duration = Duration::from_secs(1);
const REOPEN_MAX: Duration = Duration::from_secs(30);
/// Requests at one time besides calls.
const OTHER_REQUESTS_MAX: usize = 16;
const PROXY_VARIABLES: [&str; 6] =
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
/// Headers that say how the others are to be read.
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
const DEPRECATED: &str = "it speaks HTTP+SSE, a transport that MCP has deprecated and Lockhouse does not speak; configure its \
                          streamable HTTP endpoint, usually the same URL with /mcp in place of /sse";

/// A transport to the endpoint, and what tells when it has come to nothing.
pub(super) fn transport(
    endpoint: &HttpEndpoint,
    limits: &ServerLimits,
    authority: Authority,
) -> Result<(StreamableHttpClientTransport<Client>, Broken), HttpFault> {
    let unusable = |reason: String| HttpFault::new(Kind::Unusable, reason, "");
    if endpoint.url.path().trim_end_matches('/').ends_with("/sse") {
        return Err(unusable(DEPRECATED.into()));
    }
    let broken = Broken::default();
    let http = connector(endpoint).map_err(|error| unusable(format!("cannot set up HTTP: {error}")))?;
    let (url, place) = (endpoint.url.clone(), place(endpoint));
    let exchange = Exchange { http, url, place, authority, broken: broken.clone() };
    let client = Client::new(exchange, limits.message_bytes_max);
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .custom_headers(headers(endpoint)?)
        .max_concurrent_requests(limits.calls_max + OTHER_REQUESTS_MAX);
    let mut reopen = ExponentialBackoff::default();
    (reopen.base_duration, reopen.max_delay) = (REOPEN_MIN, Some(REOPEN_MAX));
    config.retry_config = Arc::new(reopen);
    let runtime = threads::http().map_err(|error| unusable(format!("cannot start a thread: {error}")))?;
    // The transport runs where it is made.
    let _entered = runtime.enter();
    Ok((StreamableHttpClientTransport::with_client(client, config), broken))
}

/// The answer to a request without a token.
pub(super) async fn probe(endpoint: &HttpEndpoint) -> Result<reqwest::Response, HttpFault> {
    let unusable = |reason: String| HttpFault::new(Kind::Unusable, reason, "");
    let http = connector(endpoint).map_err(|error| unusable(format!("cannot set up HTTP: {error}")))?;
    let version = ProtocolVersion::V_2026_07_28;
    let body = json!({
        "jsonrpc": "2.0", "id": 0, "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": version.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "lockhouse", "version": env!("CARGO_PKG_VERSION")},
        }},
    });
    let request = http.post(endpoint.url.clone()).headers(headers(endpoint)?.into_iter().collect());
    let request =
        request.header("mcp-protocol-version", version.as_str()).header("mcp-method", "server/discover");
    let request = request.header(ACCEPT, client::EITHER).json(&body).timeout(PROBE_TIMEOUT);
    request.send().await.map_err(|error| HttpFault::unanswered(&error, &place(endpoint)))
}

fn connector(endpoint: &HttpEndpoint) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("lockhouse/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .pool_idle_timeout(IDLE_CONNECTION)
        .referer(false)
        .redirect(Policy::custom(follow_at_home));
    // The variables for proxies are honoured, but no proxy has business between two programs of one host.
    if endpoint.is_on_this_host() { builder.no_proxy() } else { builder }.build()
}

/// `HOST:PORT`, for people, and what may stand between.
fn place(endpoint: &HttpEndpoint) -> String {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match PROXY_VARIABLES.iter().find(|name| is_set(name) && !endpoint.is_on_this_host()) {
        Some(name) => format!("{} ({name} is set)", endpoint.place()),
        None => endpoint.place(),
    }
}

/// Headers and tokens stay with the origin that they are for; and only these two statuses leave a request what it is.
fn follow_at_home(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_home = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    let repeats = matches!(attempt.status().as_u16(), 307 | 308);
    if is_home && repeats && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Why a header of the configuration cannot be sent.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("its header {0:?} is one that Lockhouse sets itself; take it out of `headers`")]
    Own(String),
    #[error("its header {0:?} has a name that HTTP does not allow")]
    Name(String),
    #[error("its header {0:?} has a value that HTTP does not allow")]
    Value(String),
}

impl From<HeaderError> for HttpFault {
    fn from(error: HeaderError) -> Self {
        Self::new(Kind::Unusable, error.to_string(), "")
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
