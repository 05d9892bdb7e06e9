//! A stream of events, rewritten for rmcp.

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Response;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::task::coop;
use tokio::time::sleep_until;

use super::answers::{self, Asked};
use super::events::{Event, Events, SseItem};
use super::held::Share;
use super::load::Load;
use crate::ids::id_at_start;
use crate::inbound::{CUT_OFF, Received, TOO_LARGE, TYPED_BYTES_MAX, failed, reading};
use crate::transport::SKIPPED_BYTES_MAX;

const LONG_EVENT: &str = "it sent an event of more than 1 MiB that nobody asked for";
const ENDLESS_EVENT: &str = "it sent an event of more than 256 MiB beyond the limit of one message";
const UNKNOWN_EVENT: &str = "it sent an event over the limit of one message that answers nothing";

/// The events of a response. `asked` is the request that it answers, if it is the answer to one.
pub(super) fn answers(
    response: Response,
    share: Share,
    asked: Option<Asked>,
    load: Load,
) -> BoxStream<'static, SseItem> {
    let reading =
        Reading { response: Some(response), events: Events::new(), share, asked, load, can_resume: false };
    stream::unfold(reading, async |mut reading| reading.next().await.map(|item| (item, reading))).boxed()
}

struct Reading {
    /// `None` after its end.
    response: Option<Response>,
    events: Events,
    share: Share,
    /// Until it is answered.
    asked: Option<Asked>,
    load: Load,
    can_resume: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<SseItem> {
        loop {
            while !self.load.traffic.is_over()
                && let Some(event) = self.events.next()
            {
                // One piece can hold many events, and reading them would never let others have their turn.
                coop::consume_budget().await;
                if let Some(event) = self.rewritten(event).await {
                    return Some(Ok(event));
                }
            }
            match self.piece().await? {
                Ok(true) => {}
                ended => {
                    self.response = None;
                    return match self.asked.take() {
                        // Nobody must wait for an answer that cannot come.
                        Some(asked) if !self.can_resume || self.load.traffic.is_over() => {
                            self.load.traffic.answered(&asked.id);
                            Some(Ok(event(&asked.failed(CUT_OFF))?))
                        }
                        _ => ended.err().map(|error| Err(SseError::Body(Box::new(error)))),
                    };
                }
            }
        }
    }

    /// Takes in a piece of the stream; whether it goes on. `None` after its end.
    async fn piece(&mut self) -> Option<reqwest::Result<bool>> {
        let traffic = &self.load.traffic;
        let response = self.response.as_mut()?;
        if traffic.is_over() {
            return Some(Ok(false));
        }
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Some(Ok(false)),
            Err(error) => return Some(Err(error)),
        };
        self.events.feed(&chunk, self.share.bytes_max());
        // Until the next piece is taken in: what is whole is passed on before.
        self.share.set(self.events.kept());
        if self.events.held() > TYPED_BYTES_MAX && !traffic.owes() {
            traffic.violated(LONG_EVENT);
        }
        if self.events.skipped() > SKIPPED_BYTES_MAX {
            traffic.violated(ENDLESS_EVENT);
        }
        let ignored = self.events.take_ignored();
        Some(Ok(ignored == 0 || traffic.ignored(ignored)))
    }

    async fn rewritten(&mut self, event: Event) -> Option<Sse> {
        let (bytes, message, mut sse) = match event {
            Event::TooLarge(head) => {
                let asked = self.asked.as_ref().map(|asked| asked.id.clone());
                let mut ids = [id_at_start(&head), asked.clone()].into_iter().flatten();
                let Some(id) = ids.find(|id| self.load.traffic.answered(id)) else {
                    self.load.traffic.unattributable(UNKNOWN_EVENT);
                    return None;
                };
                if asked.as_ref() == Some(&id) {
                    // What follows is of no use to anybody.
                    self.response = None;
                }
                (0, failed(TOO_LARGE, id), Sse::default())
            }
            Event::Whole(mut sse) => {
                self.can_resume |= sse.id.is_some();
                let is_message = matches!(sse.event.as_deref(), None | Some("" | "message"));
                let data = sse.data.take().unwrap_or_default();
                let bytes = data.len();
                let message = match is_message && !data.trim().is_empty() {
                    true => self.message(data).await,
                    false => {
                        self.load.traffic.ignored(bytes);
                        None
                    }
                };
                match message {
                    Some(message) => (bytes, message, sse),
                    // What is not a message may still say where to resume, and when.
                    None => return (sse != Sse::default()).then_some(sse),
                }
            }
        };
        self.note(&message);
        sse.data = reading(bytes, move || serde_json::to_string(&message).ok()).await?;
        Some(sse)
    }

    /// The message of an event, as far as the server may send it.
    async fn message(&self, data: String) -> Option<Received> {
        let traffic = &self.load.traffic;
        let (asked, load) = (self.asked.clone(), self.load.clone());
        let read = reading(data.len(), move || answers::event(&data, asked.as_ref(), &load)).await?;
        let (message, pause) = traffic.admitted(read)?;
        if let Some(until) = pause {
            // Meanwhile nothing is read, and the connection holds the server back.
            sleep_until(until).await;
        }
        message
    }

    /// Forgets the request once it is answered, and counts what the server asks.
    fn note(&mut self, message: &Received) {
        if matches!(message, JsonRpcMessage::Request(_)) {
            self.load.asked();
        }
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if self.asked.as_ref().is_some_and(|asked| Some(&asked.id) == id) {
            self.asked = None;
        }
    }
}

fn event(message: &Received) -> Option<Sse> {
    Some(Sse { data: Some(serde_json::to_string(message).ok()?), ..Sse::default() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use rmcp::model::{ClientRequest, JsonRpcRequest, PingRequest, RequestId};

    use super::super::answers::What;
    use super::super::held::Held;
    use super::*;
    use crate::broken::Broken;

    /// The limit of one message.
    const BYTES_MAX: usize = 1024 * 1024;

    /// A connection on which requests with these ids are not answered yet.
    fn owing(ids: &[i64]) -> (Load, Broken) {
        let broken = Broken::default();
        let load = Load::new(broken.clone());
        for id in ids {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            load.traffic.requested(&JsonRpcRequest::new(RequestId::Number(*id), ping));
        }
        (load, broken)
    }

    fn asked(id: i64) -> Option<Asked> {
        Some(Asked { id: RequestId::Number(id), what: What::Other })
    }

    /// These pieces, and then nothing more without an end.
    fn unending(pieces: Vec<String>) -> Response {
        let pieces = stream::iter(pieces).chain(stream::pending()).map(Ok::<_, Infallible>);
        http::Response::new(reqwest::Body::wrap_stream(pieces)).into()
    }

    /// What is read without waiting.
    fn now(events: &mut BoxStream<'static, SseItem>) -> Option<String> {
        let item = events.next().now_or_never()??;
        item.expect("no fault").data
    }

    fn failed_7(told: Option<&String>) -> bool {
        told.is_some_and(|told| told.contains(r#""id":7"#) && told.contains(TOO_LARGE))
    }

    fn large(begin: &str) -> String {
        format!("data: {{{begin},\"result\":\"{}\"}}\n\n", "x".repeat(2 * BYTES_MAX))
    }

    fn reason(broken: &Broken) -> Option<(String, bool)> {
        broken.reason().map(|reason| (reason.words, reason.is_excess))
    }

    #[tokio::test]
    async fn an_event_over_the_limit_that_names_no_call_ends_the_connection() {
        for (ids, begin, expected) in [
            (&[7][..], "\"jsonrpc\":\"2.0\"", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"id\":8", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"method\":\"ping\",\"id\":7", Some((UNKNOWN_EVENT.to_owned(), false))),
            (&[7], "\"id\":7", None),
            // Of the two reasons for it, the first one.
            (&[], "\"id\":7", Some((UNKNOWN_EVENT.to_owned(), true))),
        ] {
            let (load, broken) = owing(ids);
            let share = Held::new(BYTES_MAX).share();
            let mut events = answers(unending(vec![large(begin), large(begin)]), share, None, load);
            let told = now(&mut events);
            assert_eq!((failed_7(told.as_ref()), reason(&broken)), (expected.is_none(), expected), "{begin}");
        }
    }

    #[tokio::test]
    async fn an_event_over_the_limit_fails_its_call_at_once_and_its_rest_costs_nothing() {
        let (load, broken) = owing(&[7, 8]);
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
        let mut events = answers(response, Held::new(BYTES_MAX).share(), None, load);
        let told = events.next().await.expect("an item").expect("no fault").data;
        assert!(failed_7(told.as_ref()) && taken.load(Ordering::Relaxed) < 10, "{told:?}");
        let next = events.next().await.expect("an item").expect("no fault").data;
        assert!(next.is_some_and(|next| next.contains(r#""id":8"#) && next.contains("result")));
        assert_eq!((taken.load(Ordering::Relaxed), reason(&broken)), (514, None));
    }

    #[tokio::test]
    async fn an_answer_over_the_limit_that_ends_in_one_piece_is_told_to_the_call_whose_stream_it_is() {
        let (load, broken) = owing(&[7]);
        let mut events = answers(
            unending(vec![large("\"jsonrpc\":\"2.0\"")]),
            Held::new(BYTES_MAX).share(),
            asked(7),
            load,
        );
        let told = now(&mut events);
        assert!(failed_7(told.as_ref()), "{told:?}");
        assert!(matches!(events.next().now_or_never(), Some(None)), "nothing more is read of it");
        assert_eq!(reason(&broken), None);
    }

    #[tokio::test]
    async fn the_call_whose_stream_would_hold_more_than_the_connection_may_fails_as_too_large() {
        let (load, broken) = owing(&[5, 6, 7, 8]);
        let held = Held::new(BYTES_MAX);
        let begin = || unending(vec![format!("data: {{\"result\":\"{}", "x".repeat(900_000))]);
        let begun = |id: i64| {
            let mut events = answers(begin(), held.share(), asked(id), load.clone());
            (now(&mut events), events)
        };
        let (first, second) = (begun(5), begun(6));
        assert_eq!((&first.0, &second.0), (&None, &None), "two of them fit");
        let (third, _) = begun(7);
        assert!(failed_7(third.as_ref()), "{third:?}");
        drop(first);
        assert_eq!(begun(8).0, None, "what is given back is there for others");
        assert_eq!(reason(&broken), None);
    }
}
