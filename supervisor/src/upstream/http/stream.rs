//! A stream of events, rewritten for rmcp.

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Response;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use super::answers::{self, Asked, Received};
use super::events::{Event, Events, SseItem};
use super::load::Load;
use crate::upstream::transport::{CUT_OFF, TOO_LARGE, failed, id_in};

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
            while let Some(event) = self.events.next() {
                if let Some(event) = self.rewritten(event) {
                    return Some(Ok(event));
                }
            }
            match self.response.as_mut()?.chunk().await {
                Ok(Some(chunk)) => self.events.feed(&chunk),
                ended => {
                    self.response = None;
                    return match self.asked.take() {
                        // Nobody must wait for an answer that cannot come.
                        Some(asked) if !self.can_resume => Some(Ok(event(&asked.failed(CUT_OFF))?)),
                        _ => ended.err().map(|error| Err(SseError::Body(Box::new(error)))),
                    };
                }
            }
        }
    }

    fn rewritten(&mut self, event: Event) -> Option<Sse> {
        let (message, mut sse) = match event {
            Event::TooLarge(head) => {
                let id = self.asked.as_ref().map(|asked| asked.id.clone()).or_else(|| id_in(&head));
                (failed(TOO_LARGE, id?), Sse::default())
            }
            Event::Whole(sse) => {
                self.can_resume |= sse.id.is_some();
                let is_message = matches!(sse.event.as_deref(), None | Some("" | "message"));
                let data = sse.data.as_deref().filter(|data| is_message && !data.trim().is_empty());
                match data.map(|data| answers::event(data, self.asked.as_ref(), &self.load)) {
                    Some(Some(message)) => (message, Sse { data: None, ..sse }),
                    // What is not a message may still say where to resume, and when.
                    _ => return Some(Sse { data: None, ..sse }),
                }
            }
        };
        self.note(&message);
        sse.data = serde_json::to_string(&message).ok();
        Some(sse)
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
