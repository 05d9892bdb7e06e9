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
use super::load::Load;
use crate::upstream::ids::id_at_start;
use crate::upstream::inbound::{CUT_OFF, Inbound, Received, TOO_LARGE, TYPED_BYTES_MAX, failed, reading};

const LONG_EVENT: &str = "it sent an event of more than 1 MiB that nobody asked for";

/// The events of a response. `asked` is the request that it answers, if it is the answer to one.
pub(super) fn answers(
    response: Response,
    bytes_max: usize,
    asked: Option<Asked>,
    load: Load,
) -> BoxStream<'static, SseItem> {
    let reading =
        Reading { response: Some(response), events: Events::new(bytes_max), asked, load, can_resume: false };
    stream::unfold(reading, async |mut reading| reading.next().await.map(|item| (item, reading))).boxed()
}

struct Reading {
    /// `None` after its end.
    response: Option<Response>,
    events: Events,
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
            if self.events.is_over_limit()
                && let Some(asked) = self.asked.take()
            {
                self.response = None;
                self.load.traffic.answered(&asked.id);
                return Some(Ok(event(&asked.failed(TOO_LARGE))?));
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
        self.events.feed(&chunk);
        if self.events.held() > TYPED_BYTES_MAX && !traffic.owes() {
            traffic.violated(LONG_EVENT);
        }
        let ignored = self.events.take_ignored();
        Some(Ok(ignored == 0 || traffic.ignored(ignored)))
    }

    async fn rewritten(&mut self, event: Event) -> Option<Sse> {
        let (bytes, message, mut sse) = match event {
            Event::TooLarge(head) => {
                let id = id_at_start(&head).filter(|id| self.load.traffic.answered(id));
                (0, failed(TOO_LARGE, id?), Sse::default())
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
        let (bytes, traffic) = (data.len(), &self.load.traffic);
        let (asked, load) = (self.asked.clone(), self.load.clone());
        let read = reading(bytes, move || answers::event(&data, asked.as_ref(), &load)).await?;
        match read {
            Inbound::Answer(id, message) if traffic.answered(&id) => Some(message),
            Inbound::Answer(..) => {
                traffic.unsolicited(bytes);
                None
            }
            Inbound::Unsolicited(message) => {
                if let Some(until) = traffic.unasked(bytes, message.as_ref())? {
                    // Meanwhile nothing is read, and the connection holds the server back.
                    sleep_until(until).await;
                }
                message
            }
            Inbound::Violation(words) => {
                traffic.violated(words);
                None
            }
        }
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
