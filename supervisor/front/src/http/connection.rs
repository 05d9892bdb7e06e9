//! Serves one connection with HTTP/1.1 or HTTP/2, and closes it when a timeout passes.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use lockhouse_base::http_checks::checked_stream::HeadCheckedStream;
use lockhouse_base::http_checks::host_check::ConnectionInfo;
use lockhouse_base::listen::Stream;
use lockhouse_messages::{ClientCertificate, HttpRefusal};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ServerEnds;
use super::certificate_header::CertificateHeader;
use super::connection_timeouts::{
    ConnectionTracker, TimedStream, TimeoutKind, TrackedBody, WAITING_REQUESTS_MAX,
};
use super::counters;
use super::limit_key::LimitKey;
use super::limits::HttpLimits;
use super::peer_turns::Turns;
use super::rate_limiter::RateLimiter;
use super::trusted_proxies::TrustedProxies;
use crate::access::{Peer, ShownBy};

/// Maximum time for a connection to end after its graceful shutdown has begun, because it was idle or because the
/// process stops serving.
/// Bound: AI clients.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// Interval of HTTP/2 keep-alive pings (`PING_INTERVAL`), and the time within which the client must answer each ping
/// (`PING_TIMEOUT`).
/// Bound: AI clients.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// HTTP/2 flow-control windows, in bytes, of a stream (`STREAM_WINDOW`) and of a connection (`CONNECTION_WINDOW`). They
/// bound the memory for unread bytes: 128 KiB per connection, which is 128 MiB for the default of 1,024 `connections`.
/// [`WAITING_REQUESTS_MAX`] keeps part of the connection's window free while requests wait for a permit for their
/// bodies.
/// Bound: AI clients.
const STREAM_WINDOW: u32 = 32 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;
/// The stream window in bytes that a client assumes before it receives [`STREAM_WINDOW`] (RFC 9113).
const INITIAL_STREAM_WINDOW: u32 = 65_535;
const _: () =
    assert!(INITIAL_STREAM_WINDOW + (WAITING_REQUESTS_MAX as u32 - 1) * STREAM_WINDOW < CONNECTION_WINDOW);

/// Settings and services that all connections share.
#[derive(Clone)]
pub(super) struct ConnectionServer {
    router: Router,
    pub(super) limits: HttpLimits,
    pub(super) proxies: TrustedProxies,
    certificates: CertificateHeader,
    /// Rate limit of each peer for requests that are answered without authentication. Exceeding it delays the
    /// responses.
    unauthenticated: RateLimiter,
    pub(super) closing: CancellationToken,
    retiring: CancellationToken,
}

/// A marker in the extensions of a response: the request was authenticated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authenticated;

/// A marker in the extensions of a response: the connection is closed instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed without an answer")]
struct Unanswered;

/// Returns a response in whose place the connection is closed.
pub(super) fn drop_connection() -> Response<Body> {
    let mut response = Response::default();
    response.extensions_mut().insert(Unanswered);
    response
}

/// Returns the response (400) to a request whose client cannot be read from the headers of a trusted proxy.
fn unreadable_proxy_header(why: &str) -> Response<Body> {
    counters::count_refusal(HttpRefusal::Head);
    counters::count_response(StatusCode::BAD_REQUEST.as_u16());
    let words = format!("the client of this request cannot be read from the headers of the proxy: {why}");
    (StatusCode::BAD_REQUEST, words).into_response()
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectedClient {
    pub(super) peer: Peer,
    /// The certificate that it has shown in the handshake of TLS.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

impl From<Peer> for ConnectedClient {
    fn from(peer: Peer) -> Self {
        Self { peer, certificate: None }
    }
}

impl ConnectionServer {
    pub(super) fn new(
        router: Router,
        limits: HttpLimits,
        proxies: TrustedProxies,
        certificates: CertificateHeader,
        ends: ServerEnds,
    ) -> Self {
        let unauthenticated = RateLimiter::per_second(limits.unauthenticated_requests_per_peer_per_second);
        let ServerEnds { closing, retiring } = ends;
        Self { router, limits, proxies, certificates, unauthenticated, closing, retiring }
    }

    /// Returns the settings of HTTP for a connection whose requests run in these turns.
    fn builder(&self, turns: &Turns) -> Builder<Turns> {
        let limits = &self.limits;
        let mut builder = Builder::new(turns.clone());
        // `connection_timeouts` limits the time for a head; hyper's timer would include idle time.
        builder.http1().header_read_timeout(None).max_headers(limits.headers).max_buf_size(limits.head_bytes);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(limits.streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX));
        builder
    }

    /// Delays the response to a request that was not authenticated, if its sender exceeds the rate limit for such
    /// requests.
    async fn delay_response(&self, sender: &Peer, tracker: &ConnectionTracker) {
        let permit = self.unauthenticated.reserve(LimitKey::for_peer(sender));
        if matches!(permit, Ok((_, wait)) if wait.is_zero()) {
            return;
        }
        tokio::select! {
            () = sleep_until(tracker.next_delayed_response()) => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Serves the HTTP requests of a connection until it ends, until it exceeds a timeout, or until [`SHUTDOWN_GRACE`]
    /// has passed since `closing` was cancelled. `tracker` measures the timeouts, and tells the connection limiter how
    /// the connection is used.
    #[expect(
        clippy::too_many_lines,
        reason = "serves one request from start to end, next to the timeouts of its connection"
    )]
    pub(super) async fn serve(
        &self,
        stream: Box<dyn Stream>,
        client: ConnectedClient,
        connection_info: ConnectionInfo,
        tracker: ConnectionTracker,
        turns: &Turns,
    ) {
        let stream = TimedStream { stream, tracker: tracker.clone() };
        let stream = HeadCheckedStream::new(stream, self.limits.head_bytes);
        let stream = TokioIo::new(stream.on_refusal(|| counters::count_refusal(HttpRefusal::Head)));
        let router = TowerToHyperService::new(self.router.clone());
        let request_tracker = tracker.clone();
        let server = self.clone();
        let ConnectedClient { peer, certificate } = client;
        let is_proxy = self.proxies.is_trusted(&peer);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let active = request_tracker.begin_request(request.version());
            let certificate = match is_proxy {
                true => server.certificates.read(request.headers()),
                false => Ok(certificate.clone().map(ShownBy::Client)),
            };
            let sender = server.proxies.sender(peer, request.headers());
            let answering =
                sender.and_then(|sender| Ok((sender, certificate?))).map(|(sender, certificate)| {
                    request.extensions_mut().insert(sender);
                    certificate.map(|certificate| request.extensions_mut().insert(certificate));
                    request.extensions_mut().insert(connection_info);
                    request.extensions_mut().insert(request_tracker.clone());
                    (sender, router.call(request))
                });
            let (server, tracker) = (server.clone(), request_tracker.clone());
            async move {
                let response: Response<Body> = match answering {
                    Ok((sender, answering)) => {
                        let response = answering.await.unwrap_or_else(|never: Infallible| match never {});
                        // Not for a proxy: its few connections carry the requests of many clients.
                        if !is_proxy && response.extensions().get::<Authenticated>().is_none() {
                            server.delay_response(&sender, &tracker).await;
                        }
                        response
                    }
                    Err(why) => unreadable_proxy_header(why),
                };
                if response.extensions().get::<Unanswered>().is_some() {
                    return Err(Unanswered);
                }
                Ok(response.map(|body| TrackedBody { body, _active: active }))
            }
        });
        let builder = self.builder(turns);
        let mut connection = pin!(builder.serve_connection(stream, service));
        let mut closing = pin!(self.closing.cancelled());
        let mut retiring = pin!(self.retiring.cancelled());
        let (mut is_retiring, mut is_last) = (false, false);
        let mut timer = pin!(sleep_until(Instant::now() + self.limits.head));
        let (mut shutdown_deadline, mut is_closing): (Option<Instant>, bool) = (None, false);
        poll_fn(|context| {
            loop {
                if connection.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                if !is_closing && closing.as_mut().poll(context).is_ready() {
                    is_closing = true;
                    shutdown_deadline = Some(Instant::now() + SHUTDOWN_GRACE);
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                is_retiring = is_retiring || retiring.as_mut().poll(context).is_ready();
                // Not while it is idle: the client may be sending its next request.
                if is_retiring && !is_last && tracker.is_active() {
                    is_last = true;
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                // The poll above reads and writes, which moves the deadline.
                let deadline = match shutdown_deadline {
                    // An idle connection may have begun another request before it received the shutdown.
                    Some(until) if is_closing || !tracker.is_active() => Some((until, TimeoutKind::Stalled)),
                    _ => tracker.deadline(&self.limits),
                };
                let Some((until, kind)) = deadline else { return Poll::Pending };
                if timer.deadline() != until {
                    timer.as_mut().reset(until);
                }
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                match kind {
                    TimeoutKind::Idle => {
                        shutdown_deadline = Some(Instant::now() + SHUTDOWN_GRACE);
                        connection.as_mut().graceful_shutdown();
                    }
                    TimeoutKind::Head | TimeoutKind::Stalled => {
                        counters::count_refusal(HttpRefusal::Timeout);
                        tracing::debug!("a connection was closed: {kind:?}");
                        return Poll::Ready(());
                    }
                }
            }
        })
        .await;
    }
}
