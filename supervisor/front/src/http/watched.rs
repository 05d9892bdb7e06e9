//! What happens on a connection, and how long it may go on so.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Version;
use hyper::body::{Body, Frame, SizeHint};
use lockhouse_base::telemetry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::limits::HttpLimits;
use super::rate::{Turn, WAIT_MAX};
use super::request_heads::RequestHeads;

/// Requests on one connection that may wait for a place for a large body. What such a request has sent takes up the window
/// of its HTTP/2 connection; without a bound, the requests that have a place could receive nothing more.
pub(super) const WAITING_MAX: usize = 2;
/// How far ahead answers on one connection are put off.
const PUT_OFF_MAX: Duration = Duration::from_secs(30);

/// A stream of bytes, of whatever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What the choice between connections rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) is_authenticated: bool,
    /// Whether a request is being answered, or bytes of an answer are not taken yet.
    pub(super) is_active: bool,
    /// Since when it has done nothing that counts: an unauthenticated connection since it was accepted.
    pub(super) since: Instant,
}

/// What a connection waits for. Copies watch the same one.
#[derive(Clone, Debug)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

#[derive(Debug)]
struct Seen {
    accepted: Instant,
    /// Requests whose answers are not whole.
    active: usize,
    /// The head of the next request: when it began. Until there was a request, that is the beginning of the connection.
    head_since: Option<Instant>,
    idle_since: Instant,
    /// Bytes of an answer that are not taken.
    blocked_since: Option<Instant>,
    is_http2: bool,
    is_authenticated: bool,
    /// Of the handshake of TLS, until a request was admitted.
    handshake: Option<Turn>,
    /// When the last of the answers that were put off is to leave.
    put_off_until: Option<Instant>,
    /// Requests that wait for a place for their bodies.
    waiting: usize,
}

/// What a connection did not do in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// Send the head of a request.
    Head,
    /// Send another request: nothing is wrong with that.
    Idle,
    /// Take what it asked for.
    Stalled,
}

impl Watch {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let seen = Seen {
            accepted: now,
            active: 0,
            head_since: Some(now),
            idle_since: now,
            blocked_since: None,
            is_http2: false,
            is_authenticated: false,
            handshake: None,
            put_off_until: None,
            waiting: 0,
        };
        Self(Arc::new(Mutex::new(seen)))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }

    /// A request whose head is whole, until its answer is.
    pub(super) fn begin(&self, version: Version) -> Active {
        let mut seen = self.seen();
        seen.active += 1;
        seen.head_since = None;
        seen.is_http2 = version == Version::HTTP_2;
        Active(self.clone())
    }

    /// Until when what goes on now may go on, and what it is. A request that is being answered has all the time that it
    /// takes, as long as the answer is taken.
    pub(super) fn deadline(&self, limits: &HttpLimits) -> Option<(Instant, Late)> {
        let seen = self.seen();
        if let Some(since) = seen.blocked_since {
            return Some((since + limits.stall, Late::Stalled));
        }
        if seen.active > 0 {
            return None;
        }
        match seen.head_since {
            Some(since) => Some((since + limits.head, Late::Head)),
            None => Some((seen.idle_since + limits.keep_alive, Late::Idle)),
        }
    }

    /// Whether a request is being answered.
    pub(super) fn is_active(&self) -> bool {
        self.seen().active > 0
    }

    /// The handshake of TLS has taken this turn, which counts unless a request is admitted.
    pub(super) fn has_shaken_hands(&self, turn: Turn) {
        self.seen().handshake = Some(turn);
    }

    /// A request on it was admitted.
    pub(super) fn admitted(&self) {
        let mut seen = self.seen();
        seen.is_authenticated = true;
        if let Some(turn) = seen.handshake.take() {
            turn.give_back();
        }
    }

    /// What the connection limiter wants to know.
    pub(super) fn in_use(&self) -> Use {
        let seen = self.seen();
        // Requests that are refused make no stranger younger than a client whose first request is on its way.
        let since = if seen.is_authenticated { seen.idle_since } else { seen.accepted };
        let is_active = seen.active > 0 || seen.blocked_since.is_some();
        Use { is_authenticated: seen.is_authenticated, is_active, since }
    }

    /// When the next answer is to leave that is put off: one after the other, however many requests came at once.
    pub(super) fn next_put_off(&self) -> Instant {
        let mut seen = self.seen();
        let now = Instant::now();
        let next = seen.put_off_until.map_or(now, |until| until.max(now)) + WAIT_MAX;
        let next = next.min(now + PUT_OFF_MAX);
        seen.put_off_until = Some(next);
        next
    }

    /// A request begins to wait for a place for its body. None if [`WAITING_MAX`] requests on this connection wait already.
    pub(super) fn wait_for_place(&self) -> Option<WaitingForPlace> {
        let mut seen = self.seen();
        if seen.waiting >= WAITING_MAX {
            return None;
        }
        seen.waiting += 1;
        Some(WaitingForPlace(self.clone()))
    }

    fn has_read(&self) {
        let mut seen = self.seen();
        // Over HTTP/2 bytes may be of the connection alone.
        if seen.active == 0 && seen.head_since.is_none() && !seen.is_http2 {
            seen.head_since = Some(Instant::now());
        }
    }

    fn wrote<T>(&self, polled: &Poll<T>) {
        let mut seen = self.seen();
        match polled {
            Poll::Ready(_) => seen.blocked_since = None,
            Poll::Pending => drop(seen.blocked_since.get_or_insert_with(Instant::now)),
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Active(Watch);

impl Drop for Active {
    fn drop(&mut self) {
        let mut seen = self.0.seen();
        seen.active -= 1;
        seen.idle_since = Instant::now();
    }
}

/// A request that waits for a place for its body, until this is dropped.
#[derive(Debug)]
pub(super) struct WaitingForPlace(Watch);

impl Drop for WaitingForPlace {
    fn drop(&mut self) {
        self.0.seen().waiting -= 1;
    }
}

/// An answer's body, which is being sent until it is dropped.
pub(super) struct Answer {
    pub(super) body: axum::body::Body,
    pub(super) _active: Active,
}

impl Body for Answer {
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

/// A stream whose reads and writes are seen.
pub(super) struct Watched {
    pub(super) stream: Box<dyn Stream>,
    pub(super) watch: Watch,
    pub(super) heads: RequestHeads,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(refusal) = self.heads.instead(buffer.remaining()) {
            buffer.put_slice(refusal);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        if !read.is_empty() {
            self.watch.has_read();
            if let Err(fault) = self.heads.pass(read) {
                telemetry::refused("head");
                tracing::debug!("the head of a request is refused: {fault}");
            }
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watch.wrote(&polled);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch.wrote(&polled);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> HttpLimits {
        let seconds = Duration::from_secs;
        HttpLimits {
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
    fn each_state_has_its_time_and_an_answer_has_none() {
        let watch = Watch::new();
        let late = |watch: &Watch| watch.deadline(&limits()).map(|(_, late)| late);
        assert_eq!(late(&watch), Some(Late::Head));
        let active = watch.begin(Version::HTTP_11);
        assert_eq!(late(&watch), None);
        watch.wrote(&Poll::<()>::Pending);
        assert_eq!(late(&watch), Some(Late::Stalled));
        watch.wrote(&Poll::Ready(()));
        assert_eq!(late(&watch), None);
        drop(active);
        assert_eq!(late(&watch), Some(Late::Idle));
        watch.has_read();
        assert_eq!(late(&watch), Some(Late::Head));
        drop(watch.begin(Version::HTTP_2));
        watch.has_read();
        assert_eq!(late(&watch), Some(Late::Idle), "frames of HTTP/2 are no heads");
    }

    #[test]
    fn answers_are_put_off_one_after_the_other_and_no_further_than_a_bound() {
        let watch = Watch::new();
        let first = watch.next_put_off();
        assert_eq!(watch.next_put_off() - first, WAIT_MAX);
        let mut last = first;
        for _ in 0..1_000 {
            last = watch.next_put_off();
        }
        assert!(last > first && last <= Instant::now() + PUT_OFF_MAX);
    }

    #[test]
    fn few_requests_of_one_connection_wait_for_a_place_at_one_time() {
        let watch = Watch::new();
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| watch.wait_for_place()).collect();
        assert!(waiting.iter().all(Option::is_some));
        assert!(watch.wait_for_place().is_none());
        assert!(Watch::new().wait_for_place().is_some(), "another connection has its own");
        waiting.pop();
        assert!(watch.wait_for_place().is_some());
    }
}
