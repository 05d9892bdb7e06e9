//! The event stream of an open page (server-sent events): first every section, and then each section when it has
//! changed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};

use super::sections::{OpenPage, Sections, visible_line};
use super::viewer::Viewer;

/// Minimum time between two updates of a page. Changes within this time are sent together.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);
/// Interval of the comment lines that tell a page that its stream is alive.
const ALIVE_INTERVAL: Duration = Duration::from_secs(15);

struct EventStream<V> {
    sections: Sections,
    viewer: Viewer,
    changes: watch::Receiver<u64>,
    /// The number of the last change that was sent.
    sent: u64,
    /// Events that are not sent yet.
    queue: VecDeque<Bytes>,
    alive: tokio::time::Interval,
    /// Whether the session of the page still exists.
    is_valid: V,
    _page: OpenPage,
}

/// Returns the response with the events of an open page, beginning with the event `hello`. The stream ends when
/// `is_valid` says that the session of the page has ended.
pub(super) fn respond(
    sections: &Sections,
    page: OpenPage,
    viewer: Viewer,
    hello: &Value,
    is_valid: impl Fn() -> bool + Send + 'static,
) -> Response {
    let alive = interval_at(Instant::now() + ALIVE_INTERVAL, ALIVE_INTERVAL);
    let queue = VecDeque::from([event("hello", &hello.to_string())]);
    let (changes, sections) = (sections.changes(), sections.clone());
    let events = EventStream { sections, viewer, changes, sent: 0, queue, alive, is_valid, _page: page };
    let chunks = stream::unfold(events, |mut events| async move {
        let chunk = events.next().await?;
        Some((Ok::<_, Infallible>(chunk), events))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let media_type = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

impl<V: Fn() -> bool> EventStream<V> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.queue.pop_front() {
                return Some(chunk);
            }
            if !(self.is_valid)() {
                return None;
            }
            let last = *self.changes.borrow_and_update();
            if last > self.sent {
                if self.sent > 0 {
                    tokio::time::sleep(UPDATE_INTERVAL).await;
                }
                self.queue_changes();
                continue;
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                _ = self.alive.tick() => return Some(Bytes::from_static(b": alive\n\n")),
            }
        }
    }

    fn queue_changes(&mut self) {
        let before = self.sent;
        for (section, content) in self.sections.changed_since(before) {
            self.sent = self.sent.max(content.version);
            self.queue.push_back(event(section.name(), &visible_line(section, &content, &self.viewer)));
        }
    }
}

/// Returns an event. `line` is JSON without line feeds, so it cannot end the event.
fn event(name: &str, line: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {line}\n\n"))
}
