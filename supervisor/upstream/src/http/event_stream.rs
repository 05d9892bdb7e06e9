//! Reads an upstream server's event stream for the library rmcp: checks the size of each event and keeps results as raw
//! text.

use std::sync::atomic::Ordering;

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Response;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::task::coop;
use tokio::time::sleep_until;

use super::RawResults;
use super::backlog_limits::BacklogLimiter;
use super::buffer_budget::BufferShare;
use super::response_decoder::{self, PendingRequest};
use super::sse_parser::{SseEvent, SseItem, SseParser};
use lockhouse_mcp::SKIPPED_BYTES_MAX;
use lockhouse_mcp::inbound_message::{
    CUT_OFF, RxMessage, TOO_LARGE, TYPED_BYTES_MAX, error_response, offload_if_large,
};
use lockhouse_mcp::response_id_scan::find_id_at_start;

const LONG_EVENT: &str = "it sent an unsolicited event of more than 1 MiB";
const ENDLESS_EVENT: &str = "it sent an event of more than 256 MiB beyond the limit of one message";
const UNKNOWN_EVENT: &str = "it sent an event over the limit of one message that answers no request";

/// Returns the converted events of an HTTP response; their memory counts against `share`. `request` is the request that
/// the response answers; `None` for a stream of the server's own messages.
pub(super) fn answers(
    response: Response,
    share: BufferShare,
    request: Option<PendingRequest>,
    load: BacklogLimiter,
) -> BoxStream<'static, SseItem> {
    let reader = EventReader { request, ..EventReader::new(response, share, load) };
    stream::unfold(reader, async |mut reader| reader.next_serialized().await.map(|item| (item, reader)))
        .boxed()
}

/// An event of a stream, with its message decoded.
pub(super) struct DecodedEvent {
    pub(super) message: Option<RxMessage>,
    /// The length of the message's text in bytes.
    bytes: usize,
    /// The other fields of the event.
    pub(super) fields: Sse,
}

impl DecodedEvent {
    /// Returns an event with a message that the server has not sent.
    fn own(message: RxMessage) -> Self {
        Self { message: Some(message), bytes: 0, fields: Sse::default() }
    }
}

/// Reads the event stream of an HTTP response.
pub(super) struct EventReader {
    /// The response whose events are read; `None` once the stream has ended.
    response: Option<Response>,
    events: SseParser,
    share: BufferShare,
    /// The request that this stream answers; `None` once it is answered, or if the stream contains the server's own
    /// messages.
    request: Option<PendingRequest>,
    /// Whether results are given to rmcp as raw text, if the stream has all messages of the server (HTTP+SSE). `None` if
    /// the request of the stream determines this.
    raw: Option<RawResults>,
    load: BacklogLimiter,
    can_resume: bool,
}

impl EventReader {
    fn new(response: Response, share: BufferShare, load: BacklogLimiter) -> Self {
        let (response, events) = (Some(response), SseParser::new());
        Self { response, events, share, request: None, raw: None, load, can_resume: false }
    }

    /// Creates the reader of a stream that has all messages of the server. Events that are no messages keep their data.
    pub(super) fn of_all_messages(
        response: Response,
        share: BufferShare,
        load: BacklogLimiter,
        raw: RawResults,
    ) -> Self {
        Self { raw: Some(raw), ..Self::new(response, share, load) }
    }

    /// Returns the next event with its message as text; `None` if the stream has ended.
    async fn next_serialized(&mut self) -> Option<SseItem> {
        loop {
            match self.next().await? {
                Ok(event) => {
                    if let Some(event) = serialized(event).await {
                        return Some(Ok(event));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the next event; `None` if the stream has ended. The future can be dropped only with the reader.
    pub(super) async fn next(&mut self) -> Option<Result<DecodedEvent, SseError>> {
        loop {
            while !self.load.traffic.has_failed()
                && let Some(event) = self.events.next()
            {
                // One chunk can contain many events. Yield, so that other tasks can run between them.
                coop::consume_budget().await;
                if let Some(event) = self.decoded(event).await {
                    return Some(Ok(event));
                }
            }
            match self.piece().await? {
                Ok(true) => {}
                ended => {
                    self.response = None;
                    return match self.request.take() {
                        // The answer cannot come any more, so the request fails.
                        Some(request) if !self.can_resume || self.load.traffic.has_failed() => {
                            self.load.traffic.take_pending(&request.id);
                            Some(Ok(DecodedEvent::own(request.failed(CUT_OFF))))
                        }
                        _ => ended.err().map(|error| Err(SseError::Body(Box::new(error)))),
                    };
                }
            }
        }
    }

    /// Reads and parses the next chunk of the stream. Returns false if the response has ended or the connection has
    /// failed, true if more chunks may follow, and `None` if the stream had already ended before the call.
    async fn piece(&mut self) -> Option<reqwest::Result<bool>> {
        let traffic = &self.load.traffic;
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

    /// Decodes an event. Returns `None` if nothing of it is for rmcp, or if the server must be disconnected.
    async fn decoded(&mut self, event: SseEvent) -> Option<DecodedEvent> {
        let event = match event {
            SseEvent::TooLarge(head) => self.too_large(&head)?,
            SseEvent::CompleteLine(mut fields) => {
                self.can_resume |= fields.id.is_some();
                let is_message = matches!(fields.event.as_deref(), None | Some("" | "message"));
                let data = fields.data.take().unwrap_or_default();
                let bytes = data.len();
                let message = match is_message && !data.trim().is_empty() {
                    true => self.message(data).await,
                    false => {
                        self.load.traffic.charge_bytes(bytes);
                        fields.data = self.raw.is_some().then_some(data);
                        None
                    }
                };
                DecodedEvent { message, bytes, fields }
            }
        };
        match &event.message {
            Some(message) => self.note(message),
            // An event without a message may still contain the ID and the delay for resuming.
            None if event.fields == Sse::default() => return None,
            None => {}
        }
        Some(event)
    }

    /// Handles an event over the size limit, whose data begins with `head`: returns the error that answers its request,
    /// or `None` if it answers none, so that the server must be disconnected.
    fn too_large(&mut self, head: &[u8]) -> Option<DecodedEvent> {
        let request = self.request.as_ref().map(|request| request.id.clone());
        let mut ids = [find_id_at_start(head), request.clone()].into_iter().flatten();
        let Some(id) = ids.find(|id| self.load.traffic.take_pending(id)) else {
            self.load.traffic.fail_unattributable(UNKNOWN_EVENT);
            return None;
        };
        if request.as_ref() == Some(&id) {
            // The rest of the stream is not needed.
            self.response = None;
        }
        Some(DecodedEvent::own(error_response(TOO_LARGE, id)))
    }

    /// Decodes the message in an event's data. Charges it to the server's traffic limits unless it answers a pending
    /// request, and waits if the server has sent too much. Returns `None` if the message is dropped or the server must
    /// be disconnected.
    async fn message(&self, data: String) -> Option<RxMessage> {
        let traffic = &self.load.traffic;
        let (request, load) = (self.request.clone(), self.load.clone());
        let raw = self.raw.as_ref().map(|raw| raw.load(Ordering::Acquire));
        let read = offload_if_large(data.len(), move || match raw {
            Some(raw) => response_decoder::decode_any_event(&data, raw),
            None => response_decoder::decode_event(&data, request.as_ref(), &load),
        })
        .await?;
        let (message, pause) = traffic.admit(read)?;
        if let Some(until) = pause {
            // Nothing is read meanwhile, so TCP backpressure stops the server.
            sleep_until(until).await;
        }
        message
    }

    /// Takes note of a message of the server: clears this stream's request once it is answered, and counts requests of
    /// the server.
    fn note(&mut self, message: &RxMessage) {
        if matches!(message, JsonRpcMessage::Request(_)) {
            self.load.record_server_request();
        }
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if self.request.as_ref().is_some_and(|request| Some(&request.id) == id) {
            self.request = None;
        }
    }
}

/// Returns the event with its message as text; `None` if the message cannot be serialized.
async fn serialized(event: DecodedEvent) -> Option<Sse> {
    let DecodedEvent { message, bytes, mut fields } = event;
    if let Some(message) = message {
        fields.data = offload_if_large(bytes, move || serde_json::to_string(&message).ok()).await?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use rmcp::model::{ClientRequest, JsonRpcRequest, PingRequest, RequestId};

    use super::super::buffer_budget::BufferBudget;
    use super::super::response_decoder::RequestMethod;
    use super::*;
    use lockhouse_mcp::FailureSignal;

    /// Maximum size of one message in these tests, in bytes.
    const BYTES_MAX: usize = 1024 * 1024;

    /// Creates the limits of a connection with unanswered requests that have these IDs, and the signal that reports its
    /// failure.
    fn connection_with_pending(ids: &[i64]) -> (BacklogLimiter, FailureSignal) {
        let failure_signal = FailureSignal::default();
        let load = BacklogLimiter::new(failure_signal.clone());
        for id in ids {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            load.traffic.record_request(&JsonRpcRequest::new(RequestId::Number(*id), ping));
        }
        (load, failure_signal)
    }

    fn request(id: i64) -> Option<PendingRequest> {
        Some(PendingRequest { id: RequestId::Number(id), method: RequestMethod::Other })
    }

    /// Returns an HTTP response whose body consists of these chunks and never ends.
    fn endless_response(pieces: Vec<String>) -> Response {
        let pieces = stream::iter(pieces).chain(stream::pending()).map(Ok::<_, Infallible>);
        http::Response::new(reqwest::Body::wrap_stream(pieces)).into()
    }

    /// Returns the data of the next event if it is available without waiting; `None` otherwise.
    fn next_ready(events: &mut BoxStream<'static, SseItem>) -> Option<String> {
        let item = events.next().now_or_never()??;
        item.expect("no fault").data
    }

    fn failed_7(item: Option<&String>) -> bool {
        item.is_some_and(|item| item.contains(r#""id":7"#) && item.contains(TOO_LARGE))
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
            let (load, failure_signal) = connection_with_pending(ids);
            let share = BufferBudget::new(BYTES_MAX).share();
            let mut events = answers(endless_response(vec![large(begin), large(begin)]), share, None, load);
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
        let (load, failure_signal) = connection_with_pending(&[7, 8]);
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
        let mut events = answers(response, BufferBudget::new(BYTES_MAX).share(), None, load);
        let item = events.next().await.expect("an item").expect("no fault").data;
        assert!(failed_7(item.as_ref()) && taken.load(Ordering::Relaxed) < 10, "{item:?}");
        let next = events.next().await.expect("an item").expect("no fault").data;
        assert!(next.is_some_and(|next| next.contains(r#""id":8"#) && next.contains("result")));
        assert_eq!((taken.load(Ordering::Relaxed), reason(&failure_signal)), (514, None));
    }

    #[tokio::test]
    async fn an_answer_over_the_limit_that_ends_in_one_piece_is_told_to_the_call_whose_stream_it_is() {
        let (load, failure_signal) = connection_with_pending(&[7]);
        let mut events = answers(
            endless_response(vec![large("\"jsonrpc\":\"2.0\"")]),
            BufferBudget::new(BYTES_MAX).share(),
            request(7),
            load,
        );
        let item = next_ready(&mut events);
        assert!(failed_7(item.as_ref()), "{item:?}");
        assert!(matches!(events.next().now_or_never(), Some(None)), "nothing more is read of it");
        assert_eq!(reason(&failure_signal), None);
    }

    #[tokio::test]
    async fn the_call_whose_stream_would_hold_more_than_the_connection_may_fails_as_too_large() {
        let (load, failure_signal) = connection_with_pending(&[5, 6, 7, 8]);
        let held = BufferBudget::new(BYTES_MAX);
        let begin = || endless_response(vec![format!("data: {{\"result\":\"{}", "x".repeat(900_000))]);
        let begun = |id: i64| {
            let mut events = answers(begin(), held.share(), request(id), load.clone());
            (next_ready(&mut events), events)
        };
        let (first, second) = (begun(5), begun(6));
        assert_eq!((&first.0, &second.0), (&None, &None), "two of them fit");
        let (third, _) = begun(7);
        assert!(failed_7(third.as_ref()), "{third:?}");
        drop(first);
        assert_eq!(begun(8).0, None, "what is given back is there for others");
        assert_eq!(reason(&failure_signal), None);
    }
}
