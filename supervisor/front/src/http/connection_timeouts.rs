//! Timeouts of an HTTP connection: tracks its reads, writes and requests, and computes when it must be closed.

use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Version;
use hyper::body::{Body, Frame, SizeHint};
use lockhouse_base::listen::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::limits::HttpLimits;
use super::rate_limiter::{RatePermit, WAIT_MAX};

/// Maximum number of requests on one connection that may wait for a permit for a large body. The unread bytes of
/// waiting requests fill the flow-control window of an HTTP/2 connection. Without a limit, requests that hold a permit
/// could receive nothing more.
pub(super) const WAITING_REQUESTS_MAX: usize = 2;
/// Maximum delay of the response to a request without authentication, if its sender makes too many of them.
const RESPONSE_DELAY_MAX: Duration = Duration::from_secs(30);

/// How a connection is used. The connection limiter compares these values to choose the connection that it closes for a
/// new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionUse {
    pub(super) is_authenticated: bool,
    /// Whether a request is in flight, or part of a response is not written yet.
    pub(super) is_active: bool,
    /// Since when the connection is idle. For an unauthenticated connection, when it was accepted.
    pub(super) since: Instant,
}

/// Tracks the requests, reads and writes of one connection. Clones track the same connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionTracker(Arc<Mutex<ConnectionState>>);

#[derive(Debug)]
struct ConnectionState {
    accepted: Instant,
    /// Number of requests in flight on the connection.
    active: usize,
    /// When the head of the next request began to arrive; for the first request, when the connection was accepted.
    /// `None` while no head is being received.
    head_since: Option<Instant>,
    idle_since: Instant,
    /// Since when the peer has not accepted any bytes of a response. `None` if it accepts bytes.
    blocked_since: Option<Instant>,
    is_http2: bool,
    is_authenticated: bool,
    /// The rate-limit permit for the TLS handshake, which is refunded when a request is authenticated.
    handshake: Option<RatePermit>,
    /// Until when the most recently delayed response waits. `None` if no response was delayed.
    delayed_until: Option<Instant>,
    /// Number of requests on the connection that wait for a permit for a large body.
    waiting: usize,
}

/// The timeout that a connection exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutKind {
    /// The head of a request did not arrive in time.
    Head,
    /// No request arrived in time; the connection is closed gracefully.
    Idle,
    /// The client did not read a response in time, or the connection did not end in time after its graceful shutdown.
    Stalled,
}

impl ConnectionTracker {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let state = ConnectionState {
            accepted: now,
            active: 0,
            head_since: Some(now),
            idle_since: now,
            blocked_since: None,
            is_http2: false,
            is_authenticated: false,
            handshake: None,
            delayed_until: None,
            waiting: 0,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Counts a request as in flight until the returned guard is dropped. Called when the head of the request has been
    /// received, which tells the HTTP version of the connection.
    pub(super) fn begin_request(&self, version: Version) -> RequestGuard {
        let mut state = self.0.lock();
        state.active += 1;
        state.head_since = None;
        state.is_http2 = version == Version::HTTP_2;
        RequestGuard(self.clone())
    }

    /// Returns when the connection must be closed unless it is used before, and because of which timeout. `None` while
    /// a request is in flight, unless the client stops reading the response.
    pub(super) fn deadline(&self, limits: &HttpLimits) -> Option<(Instant, TimeoutKind)> {
        let state = self.0.lock();
        if let Some(since) = state.blocked_since {
            return Some((since + limits.stall, TimeoutKind::Stalled));
        }
        if state.active > 0 {
            return None;
        }
        match state.head_since {
            Some(since) => Some((since + limits.head, TimeoutKind::Head)),
            None => Some((state.idle_since + limits.keep_alive, TimeoutKind::Idle)),
        }
    }

    /// Returns whether a request is in flight on the connection.
    pub(super) fn is_active(&self) -> bool {
        self.0.lock().active > 0
    }

    /// Stores the rate-limit permit for the TLS handshake of the connection.
    pub(super) fn set_handshake_permit(&self, permit: RatePermit) {
        self.0.lock().handshake = Some(permit);
    }

    /// Records that a request was authenticated, and refunds the rate-limit permit for the TLS handshake.
    pub(super) fn set_authenticated(&self) {
        let mut state = self.0.lock();
        state.is_authenticated = true;
        if let Some(permit) = state.handshake.take() {
            permit.refund();
        }
    }

    /// Returns the state of the connection that the connection limiter needs.
    pub(super) fn connection_use(&self) -> ConnectionUse {
        let state = self.0.lock();
        // Rejected requests must not make a connection look younger than that of a client about to authenticate.
        let since = if state.is_authenticated { state.idle_since } else { state.accepted };
        let is_active = state.active > 0 || state.blocked_since.is_some();
        ConnectionUse { is_authenticated: state.is_authenticated, is_active, since }
    }

    /// Delays one more response of the connection, and returns when it may be sent: [`WAIT_MAX`] after the previous
    /// delayed response, but at most [`RESPONSE_DELAY_MAX`] from now. The delays of parallel requests thus add up.
    pub(super) fn next_delayed_response(&self) -> Instant {
        let mut state = self.0.lock();
        let now = Instant::now();
        let next = state.delayed_until.map_or(now, |until| until.max(now)) + WAIT_MAX;
        let next = next.min(now + RESPONSE_DELAY_MAX);
        state.delayed_until = Some(next);
        next
    }

    /// Counts a request as waiting for a permit for a large body. Returns `None` if [`WAITING_REQUESTS_MAX`] requests
    /// of the connection wait already.
    pub(super) fn begin_permit_wait(&self) -> Option<PermitWait> {
        let mut state = self.0.lock();
        if state.waiting >= WAITING_REQUESTS_MAX {
            return None;
        }
        state.waiting += 1;
        Some(PermitWait(self.clone()))
    }

    fn record_read(&self) {
        let mut state = self.0.lock();
        // Over HTTP/2, bytes may be control frames.
        if state.active == 0 && state.head_since.is_none() && !state.is_http2 {
            state.head_since = Some(Instant::now());
        }
    }

    fn record_write<T>(&self, polled: &Poll<T>) {
        let mut state = self.0.lock();
        match polled {
            Poll::Ready(_) => state.blocked_since = None,
            Poll::Pending => drop(state.blocked_since.get_or_insert_with(Instant::now)),
        }
    }
}

/// A guard that counts a request as in flight until the guard is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard(ConnectionTracker);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.active -= 1;
        state.idle_since = Instant::now();
    }
}

/// A guard that counts a request as waiting for a permit for a large body, until the guard is dropped.
#[derive(Debug)]
pub(super) struct PermitWait(ConnectionTracker);

impl Drop for PermitWait {
    fn drop(&mut self) {
        self.0.0.lock().waiting -= 1;
    }
}

/// A response body. Its request counts as in flight until the body is sent or dropped.
pub(super) struct TrackedBody {
    pub(super) body: axum::body::Body,
    pub(super) _active: RequestGuard,
}

impl Body for TrackedBody {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A byte stream that records reads and writes for the connection's timeouts.
pub(super) struct TimedStream {
    pub(super) stream: Box<dyn Stream>,
    pub(super) tracker: ConnectionTracker,
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.tracker.record_read();
        }
        polled
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.tracker.record_write(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.tracker.record_write(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.tracker.record_write(&polled);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.tracker.record_write(&polled);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> HttpLimits {
        let seconds = Duration::from_secs;
        HttpLimits {
            front_lifetime: Duration::from_secs(86_400),
            front_requests: 1_000,
            connections: 1,
            connections_per_peer: 1,
            unauthenticated_connections: 1,
            unauthenticated_requests_per_peer_per_second: 1,
            tls_handshakes_per_peer_per_second: 1,
            tls: seconds(1),
            head: seconds(2),
            body: seconds(3),
            keep_alive: seconds(4),
            stall: seconds(5),
            headers: 1,
            head_bytes: 1,
            streams: 1,
            body_bytes: 1,
            body_values: 1,
            bodies_bytes: 1,
            sessions: 1,
            sessions_per_client: 1,
            session_idle: seconds(6),
        }
    }

    #[test]
    fn each_state_has_its_timeout_and_requests_in_flight_have_none() {
        let tracker = ConnectionTracker::new();
        let kind = |tracker: &ConnectionTracker| tracker.deadline(&limits()).map(|(_, kind)| kind);
        assert_eq!(kind(&tracker), Some(TimeoutKind::Head));
        let active = tracker.begin_request(Version::HTTP_11);
        assert_eq!(kind(&tracker), None);
        tracker.record_write(&Poll::<()>::Pending);
        assert_eq!(kind(&tracker), Some(TimeoutKind::Stalled));
        tracker.record_write(&Poll::Ready(()));
        assert_eq!(kind(&tracker), None);
        drop(active);
        assert_eq!(kind(&tracker), Some(TimeoutKind::Idle));
        tracker.record_read();
        assert_eq!(kind(&tracker), Some(TimeoutKind::Head));
        drop(tracker.begin_request(Version::HTTP_2));
        tracker.record_read();
        assert_eq!(kind(&tracker), Some(TimeoutKind::Idle), "frames of HTTP/2 are no heads");
    }

    #[test]
    fn response_delays_add_up_to_a_bound() {
        let tracker = ConnectionTracker::new();
        let first = tracker.next_delayed_response();
        assert_eq!(tracker.next_delayed_response() - first, WAIT_MAX);
        let mut last = first;
        for _ in 0..1_000 {
            last = tracker.next_delayed_response();
        }
        assert!(last > first && last <= Instant::now() + RESPONSE_DELAY_MAX);
    }

    #[test]
    fn few_requests_of_one_connection_wait_for_a_body_permit() {
        let tracker = ConnectionTracker::new();
        let mut waiting: Vec<_> = (0..WAITING_REQUESTS_MAX).map(|_| tracker.begin_permit_wait()).collect();
        assert!(waiting.iter().all(Option::is_some));
        assert!(tracker.begin_permit_wait().is_none());
        assert!(ConnectionTracker::new().begin_permit_wait().is_some(), "another connection has its own");
        waiting.pop();
        assert!(tracker.begin_permit_wait().is_some());
    }
}
