//! Reads an upstream server's event stream: checks the size of each event, and keeps results as JSON text.

use std::time::Duration;

use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::Sse;
use tokio::task::coop;
use tokio::time::sleep_until;

use super::buffer_budget::BufferShare;
use super::sse_parser::{SseEvent, SseParser};
use crate::client::inbound_message::{
    self, JsonRpcResult, RxMessage, TOO_LARGE, TYPED_BYTES_MAX, failed, offload_if_large,
};
use crate::client::line_transport::SKIPPED_BYTES_MAX;
use crate::client::response_id_scan::find_id_at_start;
use crate::client::traffic_limits::{Admitted, TrafficLimiter};

const LONG_EVENT: &str = "it sent an unsolicited event of more than 1 MiB";
const ENDLESS_EVENT: &str = "it sent an event of more than 256 MiB beyond the limit of one message";
const UNKNOWN_EVENT: &str = "it sent an event over the limit of one message that answers no request";

/// What an event stream contains.
#[derive(Debug)]
pub(super) enum StreamItem {
    /// The first answer to a request of Lockhouse.
    Answer(RequestId, JsonRpcResult),
    /// A request or notification of the server.
    Message(Box<RxMessage>),
    /// An event that is no message.
    Other(Sse),
}

/// Why nothing more comes in an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The server or a limit ended it.
    Ended,
    /// The connection broke.
    BrokeOff,
}

/// Reads the event stream of an HTTP response. The memory of its events counts against `share`.
pub(super) struct SseReader {
    /// The response whose events are read; `None` once the stream has ended.
    response: Option<Response>,
    events: SseParser,
    share: BufferShare,
    /// The request that this stream answers; `None` if it contains the server's own messages.
    request: Option<i64>,
    traffic: TrafficLimiter,
    /// The ID of the last event that had one, with which the server can resume the stream.
    last_event: Option<String>,
    retry: Option<Duration>,
}

impl SseReader {
    pub(super) fn new(
        response: Response,
        share: BufferShare,
        traffic: TrafficLimiter,
        request: Option<i64>,
    ) -> Self {
        let (response, events) = (Some(response), SseParser::default());
        Self { response, events, share, request, traffic, last_event: None, retry: None }
    }

    /// Continues with another response, in which the server resumes the stream.
    pub(super) fn resume(&mut self, response: Response) {
        (self.response, self.events) = (Some(response), SseParser::default());
    }

    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// Returns the time that the server wants to pass before the stream is opened again.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the next item of the stream, or why there is none. The future can be dropped only with the reader.
    pub(super) async fn next(&mut self) -> Result<StreamItem, StreamEnd> {
        loop {
            while !self.traffic.has_failed()
                && let Some(event) = self.events.next_event()
            {
                // One chunk can contain many events. Yield, so that other tasks can run between them.
                coop::consume_budget().await;
                if let Some(item) = self.item(event).await {
                    return Ok(item);
                }
            }
            match self.piece().await {
                Some(Ok(true)) => {}
                ended => {
                    self.response = None;
                    return Err(match ended {
                        Some(Err(_)) => StreamEnd::BrokeOff,
                        _ => StreamEnd::Ended,
                    });
                }
            }
        }
    }

    /// Reads and parses the next chunk of the stream. Returns false if the response has ended or the connection has
    /// failed, true if more chunks may follow, and `None` if the stream had already ended before the call.
    async fn piece(&mut self) -> Option<reqwest::Result<bool>> {
        let traffic = &self.traffic;
        let response = self.response.as_mut()?;
        if traffic.has_failed() {
            return Some(Ok(false));
        }
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Some(Ok(false)),
            Err(error) => return Some(Err(error)),
        };
        self.events.feed(&chunk, self.share.bytes_max());
        // Counts until the next chunk: complete events are passed on before that.
        self.share.set_held_bytes(self.events.kept());
        if self.events.held() > TYPED_BYTES_MAX && !traffic.has_pending_requests() {
            traffic.fail_for_violation(LONG_EVENT);
        }
        if self.events.skipped() > SKIPPED_BYTES_MAX {
            traffic.fail_for_violation(ENDLESS_EVENT);
        }
        let ignored = self.events.take_ignored();
        Some(Ok(ignored == 0 || traffic.charge_bytes(ignored)))
    }

    /// Decodes an event. Returns `None` if nothing follows from it, or if the server must be disconnected.
    async fn item(&mut self, event: SseEvent) -> Option<StreamItem> {
        let mut event = match event {
            SseEvent::TooLarge(head) => return self.too_large(&head),
            SseEvent::CompleteLine(event) => event,
        };
        self.last_event = event.id.take().or(self.last_event.take());
        self.retry = event.retry.map(Duration::from_millis).or(self.retry);
        let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
        let bytes = event.data.as_deref().unwrap_or_default().len();
        if is_message {
            let data = event.data.filter(|data| !data.trim().is_empty());
            return match data {
                Some(data) => self.message(data).await,
                None => {
                    self.traffic.charge_bytes(bytes);
                    None
                }
            };
        }
        self.traffic.charge_bytes(bytes);
        Some(StreamItem::Other(event))
    }

    /// Handles an event over the size limit, whose data begins with `head`: returns the error that answers its request,
    /// or `None` if it answers none, so that the server must be disconnected.
    fn too_large(&mut self, head: &[u8]) -> Option<StreamItem> {
        let request = self.request.map(RequestId::Number);
        let mut ids = [find_id_at_start(head), request.clone()].into_iter().flatten();
        let Some(id) = ids.find(|id| self.traffic.take_pending(id)) else {
            self.traffic.fail_unattributable(UNKNOWN_EVENT);
            return None;
        };
        if request.as_ref() == Some(&id) {
            // The rest of the stream is not needed.
            self.response = None;
        }
        Some(StreamItem::Answer(id, failed(TOO_LARGE)))
    }

    /// Decodes the message in an event's data. Charges it to the server's traffic limits unless it answers a pending
    /// request, and waits if the server has sent too much. Returns `None` if the message is dropped or the server must
    /// be disconnected.
    async fn message(&self, data: String) -> Option<StreamItem> {
        let read = offload_if_large(data.len(), move || inbound_message::parse(data.into_bytes())).await?;
        match self.traffic.admit(read)? {
            Admitted::Answer(id, answer) => Some(StreamItem::Answer(id, answer)),
            Admitted::Unsolicited(message, pause) => {
                if let Some(until) = pause {
                    // Nothing is read meanwhile, so TCP backpressure stops the server.
                    sleep_until(until).await;
                }
                message.map(StreamItem::Message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, StreamExt, stream};

    use super::super::buffer_budget::BufferBudget;
    use super::*;
    use crate::client::connection_failure::FailureSignal;

    /// Maximum size of one message in these tests, in bytes.
    const BYTES_MAX: usize = 1024 * 1024;

    /// Creates the limits of a connection with unanswered requests that have these IDs, and the signal that reports its
    /// failure.
    fn connection_with_pending(ids: &[i64]) -> (TrafficLimiter, FailureSignal) {
        let failure_signal = FailureSignal::default();
        let traffic = TrafficLimiter::new(failure_signal.clone());
        ids.iter().for_each(|id| traffic.record_pending(*id, None));
        (traffic, failure_signal)
    }

    /// Returns an HTTP response whose body consists of these chunks and never ends.
    fn endless_response(pieces: Vec<String>) -> Response {
        let pieces = stream::iter(pieces).chain(stream::pending()).map(Ok::<_, Infallible>);
        http::Response::new(reqwest::Body::wrap_stream(pieces)).into()
    }

    /// Returns the next item if it is available without waiting; `None` otherwise.
    fn next_ready(events: &mut SseReader) -> Option<StreamItem> {
        events.next().now_or_never()?.ok()
    }

    fn failed_7(item: Option<&StreamItem>) -> bool {
        let Some(StreamItem::Answer(RequestId::Number(7), Err(error))) = item else { return false };
        error.message == TOO_LARGE
    }

    fn large(begin: &str) -> String {
        format!("data: {{{begin},\"result\":\"{}\"}}\n\n", "x".repeat(2 * BYTES_MAX))
    }

    fn reason(failure_signal: &FailureSignal) -> Option<(String, bool)> {
        failure_signal.reason().map(|reason| (reason.message, reason.is_violation))
    }

    #[tokio::test]
    async fn an_event_over_the_limit_that_names_no_call_ends_the_connection() {
        for (ids, begin, expected) in [
            (&[7][..], "\"jsonrpc\":\"2.0\"", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"id\":8", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"method\":\"ping\",\"id\":7", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"id\":7", None),
            // Both reasons apply; the first one is reported.
            (&[], "\"id\":7", Some((UNKNOWN_EVENT.to_owned(), true))),
        ] {
            let (traffic, failure_signal) = connection_with_pending(ids);
            let share = BufferBudget::new(BYTES_MAX).share();
            let mut events =
                SseReader::new(endless_response(vec![large(begin), large(begin)]), share, traffic, None);
            let item = next_ready(&mut events);
            assert_eq!(
                (failed_7(item.as_ref()), reason(&failure_signal)),
                (expected.is_none(), expected),
                "{begin}"
            );
        }
    }

    #[tokio::test]
    async fn an_event_over_the_limit_fails_its_call_at_once_and_its_rest_costs_nothing() {
        let (traffic, failure_signal) = connection_with_pending(&[7, 8]);
        let begin = format!("data: {{\"id\":7,\"result\":\"{}", "x".repeat(BYTES_MAX));
        let rest = (0..512).map(|_| "x".repeat(64 * 1024));
        let end = "\"}\n\ndata: {\"id\":8,\"result\":{}}\n\n".to_owned();
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let pieces = stream::iter([begin].into_iter().chain(rest).chain([end])).map(move |piece| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(piece)
        });
        let response = http::Response::new(reqwest::Body::wrap_stream(pieces)).into();
        let share = BufferBudget::new(BYTES_MAX).share();
        let mut events = SseReader::new(response, share, traffic, None);
        let item = events.next().await.ok();
        assert!(failed_7(item.as_ref()) && taken.load(Ordering::Relaxed) < 10, "{item:?}");
        let next = events.next().await.expect("an item");
        let StreamItem::Answer(RequestId::Number(8), Ok(result)) = next else { panic!("{next:?}") };
        assert_eq!(result, "{}");
        assert_eq!((taken.load(Ordering::Relaxed), reason(&failure_signal)), (514, None));
    }

    #[tokio::test]
    async fn an_answer_over_the_limit_that_ends_in_one_piece_is_told_to_the_call_whose_stream_it_is() {
        let (traffic, failure_signal) = connection_with_pending(&[7]);
        let mut events = SseReader::new(
            endless_response(vec![large("\"jsonrpc\":\"2.0\"")]),
            BufferBudget::new(BYTES_MAX).share(),
            traffic,
            Some(7),
        );
        let item = next_ready(&mut events);
        assert!(failed_7(item.as_ref()), "{item:?}");
        assert!(
            matches!(events.next().now_or_never(), Some(Err(StreamEnd::Ended))),
            "nothing more is read of it"
        );
        assert_eq!(reason(&failure_signal), None);
    }

    #[tokio::test]
    async fn the_call_whose_stream_would_hold_more_than_the_connection_may_fails_as_too_large() {
        let (traffic, failure_signal) = connection_with_pending(&[5, 6, 7, 8]);
        let held = BufferBudget::new(BYTES_MAX);
        let begin = || endless_response(vec![format!("data: {{\"result\":\"{}", "x".repeat(900_000))]);
        let begun = |id: i64| {
            let mut events = SseReader::new(begin(), held.share(), traffic.clone(), Some(id));
            (next_ready(&mut events), events)
        };
        let (first, second) = (begun(5), begun(6));
        assert!(first.0.is_none() && second.0.is_none(), "two of them fit");
        let (third, _) = begun(7);
        assert!(failed_7(third.as_ref()), "{third:?}");
        drop(first);
        assert!(begun(8).0.is_none(), "what is given back is there for others");
        assert_eq!(reason(&failure_signal), None);
    }

    #[tokio::test]
    async fn what_an_event_says_of_resuming_is_kept() {
        let (traffic, _) = connection_with_pending(&[]);
        let text = "id: a\nretry: 2000\ndata:\n\nevent: ping\ndata: 1\n\n".to_owned();
        let share = BufferBudget::new(BYTES_MAX).share();
        let mut events = SseReader::new(endless_response(vec![text]), share, traffic, None);
        let item = next_ready(&mut events);
        let Some(StreamItem::Other(event)) = item else { panic!("{item:?}") };
        assert_eq!((event.event.as_deref(), event.data.as_deref()), (Some("ping"), Some("1")));
        assert_eq!((events.last_event(), events.retry()), (Some("a"), Some(Duration::from_secs(2))));
    }
}
