//! One connection: HTTP/1.1 or HTTP/2, as its first bytes say, for as long as it keeps to its times.

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
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use lockhouse_base::telemetry;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Via;
use super::limits::HttpLimits;
use super::origin::Origin;
use super::proxies::TrustedProxies;
use super::rate::Rate;
use super::request_heads::RequestHeads;
use super::watched::{Answer, Late, Stream, WAITING_MAX, Watch, Watched};
use crate::access::Peer;

/// What a connection that was told to end has for it.
const FAREWELL: Duration = Duration::from_secs(5);
/// Between signs of life that an HTTP/2 client is asked for while it waits for an answer, and until it must give one.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Bytes of bodies that an HTTP/2 client may send before they are read, on one stream and on one connection. They wait in
/// this process, also while a request waits for a place for its body: at most 1,024 `connections` x 128 KiB = 128 MiB by
/// default. Requests that wait leave a part of the connection's window to the others on it: see [`WAITING_MAX`].
const STREAM_WINDOW: u32 = 32 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;
/// What a client may send on a stream before it knows of [`STREAM_WINDOW`] (RFC 9113).
const STREAM_WINDOW_AT_FIRST: u32 = 65_535;
const _: () = assert!(STREAM_WINDOW_AT_FIRST + (WAITING_MAX as u32 - 1) * STREAM_WINDOW < CONNECTION_WINDOW);

/// How connections are served: the same for all.
#[derive(Clone)]
pub(super) struct Serving {
    builder: Arc<Builder<TokioExecutor>>,
    router: Router,
    pub(super) limits: HttpLimits,
    pub(super) proxies: TrustedProxies,
    /// Of requests that were not admitted.
    unauthenticated: Rate,
    pub(super) closing: CancellationToken,
}

/// In the extensions of an answer to a request that was admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted;

/// The answer where a trusted proxy does not say as it must whose request it is.
fn unreadable(why: &str) -> Response<Body> {
    telemetry::refused("head");
    telemetry::http_answered(StatusCode::BAD_REQUEST.as_u16());
    let words = format!("whose request this is cannot be read from Forwarded or X-Forwarded-For: {why}");
    (StatusCode::BAD_REQUEST, words).into_response()
}

impl Serving {
    pub(super) fn new(
        router: Router,
        limits: HttpLimits,
        proxies: TrustedProxies,
        closing: CancellationToken,
    ) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        // The time for a head is ours to keep: hyper's would count the time before it, too.
        builder.http1().header_read_timeout(None).max_headers(limits.headers).max_buf_size(limits.head_bytes);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_ANSWERED_WITHIN)
            .max_concurrent_streams(limits.streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX));
        let unauthenticated = Rate::per_second(limits.unauthenticated_requests_per_peer_per_second);
        Self { builder: Arc::new(builder), router, limits, proxies, unauthenticated, closing }
    }

    /// Waits before a request is answered that was not admitted, where its sender has too many of them.
    async fn put_off(&self, sender: &Peer, watch: &Watch) {
        let turn = self.unauthenticated.turn(Origin::of(sender));
        if matches!(turn, Ok((_, wait)) if wait.is_zero()) {
            return;
        }
        tokio::select! {
            () = sleep_until(watch.next_put_off()) => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Serves a connection to its end.
    #[expect(
        clippy::too_many_lines,
        reason = "what one request passes, in its order, beside the clocks of its connection"
    )]
    pub(super) async fn serve(&self, stream: Box<dyn Stream>, peer: Peer, via: Via, watch: Watch) {
        let heads = RequestHeads::new(self.limits.head_bytes);
        let stream = TokioIo::new(Watched { stream, watch: watch.clone(), heads });
        let router = TowerToHyperService::new(self.router.clone());
        let seen = watch.clone();
        let serving = self.clone();
        let is_proxy = self.proxies.trust(&peer);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let active = seen.begin(request.version());
            let answering = serving.proxies.sender(peer, request.headers()).map(|sender| {
                request.extensions_mut().insert(sender);
                request.extensions_mut().insert(via);
                request.extensions_mut().insert(seen.clone());
                (sender, router.call(request))
            });
            let (serving, watch) = (serving.clone(), seen.clone());
            async move {
                let response: Response<Body> = match answering {
                    Ok((sender, answering)) => {
                        let response = answering.await?;
                        // A proxy's connections are few for many clients: one that waits would keep it from them all.
                        if !is_proxy && response.extensions().get::<Admitted>().is_none() {
                            serving.put_off(&sender, &watch).await;
                        }
                        response
                    }
                    Err(why) => unreadable(why),
                };
                Ok::<_, Infallible>(response.map(|body| Answer { body, _active: active }))
            }
        });
        let mut connection = pin!(self.builder.serve_connection(stream, service));
        let mut closing = pin!(self.closing.cancelled());
        let mut timer = pin!(sleep_until(Instant::now() + self.limits.head));
        let (mut farewell, mut is_closing): (Option<Instant>, bool) = (None, false);
        poll_fn(|context| {
            loop {
                if connection.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                if !is_closing && closing.as_mut().poll(context).is_ready() {
                    is_closing = true;
                    farewell = Some(Instant::now() + FAREWELL);
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                // Reading and writing happen in the poll above, and move the deadline.
                let deadline = match farewell {
                    // One that was idle may have begun with another request before it heard of its end.
                    Some(until) if is_closing || !watch.is_active() => Some((until, Late::Stalled)),
                    _ => watch.deadline(&self.limits),
                };
                let Some((until, late)) = deadline else { return Poll::Pending };
                if timer.deadline() != until {
                    timer.as_mut().reset(until);
                }
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                match late {
                    Late::Idle => {
                        farewell = Some(Instant::now() + FAREWELL);
                        connection.as_mut().graceful_shutdown();
                    }
                    Late::Head | Late::Stalled => {
                        telemetry::refused("timeout");
                        tracing::debug!("a connection was closed: {late:?}");
                        return Poll::Ready(());
                    }
                }
            }
        })
        .await;
    }
}
