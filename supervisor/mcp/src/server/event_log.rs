//! The messages of one event stream over HTTP. A reader that has lost its connection can be replaced by one that continues
//! after the last event that the client has seen.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use tokio::sync::Notify;

use super::output::{Closed, Output, answer_text};

/// Maximum number of messages of an event stream that are kept. If there are more, the sender waits for the reader; without a reader, the oldest
/// is dropped.
/// Bound: AI clients.
const MESSAGES_MAX: usize = 64;

/// The messages of one stream.
#[derive(Default)]
pub(super) struct EventLog {
    state: Mutex<State>,
    /// Notified of each change.
    changed: Notify,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Bytes>,
    /// The number of the first of these messages in the stream, from 0.
    first: usize,
    /// The number of the message that is to be read next.
    next: usize,
    /// The reader, of several in turn. `None` if there is none.
    reader: Option<usize>,
    readers: usize,
    /// Whether no more messages follow.
    is_complete: bool,
    /// The error code of the answer; `None` if it is none.
    error: Option<ErrorCode>,
}

impl State {
    fn end(&self) -> usize {
        self.first + self.messages.len()
    }

    /// Whether a message must wait, because the reader has not read the oldest one.
    fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_MAX && self.reader.is_some() && self.next == self.first
    }

    fn push(&mut self, message: String) {
        if self.messages.len() >= MESSAGES_MAX {
            self.messages.pop_front();
            self.first += 1;
            self.next = self.next.max(self.first);
        }
        self.messages.push_back(message.into());
    }
}

impl EventLog {
    /// Waits for a change until `poll` returns a value.
    async fn wait_for<T>(&self, mut poll: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(value) = poll(&mut self.state.lock()) {
                return value;
            }
            changed.await;
        }
    }

    async fn push(&self, message: String, answer: Option<Option<ErrorCode>>) -> Result<(), Closed> {
        let mut message = Some(message);
        let pushed = self.wait_for(|state| {
            if state.is_complete {
                return Some(Err(Closed));
            }
            if state.is_full() {
                return None;
            }
            state.push(message.take().unwrap_or_default());
            (state.is_complete, state.error) = (answer.is_some(), answer.flatten());
            Some(Ok(()))
        });
        let pushed = pushed.await;
        self.changed.notify_waiters();
        pushed
    }

    /// Expects no more messages.
    pub(super) fn complete(&self) {
        self.state.lock().is_complete = true;
        self.changed.notify_waiters();
    }

    /// Whether no more messages follow.
    pub(super) fn is_complete(&self) -> bool {
        self.state.lock().is_complete
    }

    /// Whether all messages were read and no more follow.
    pub(super) fn is_read(&self) -> bool {
        let state = self.state.lock();
        state.is_complete && state.next == state.end()
    }

    /// The number of bytes of the messages.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().messages.iter().map(|message| message.len()).sum()
    }

    /// Whether a reader reads the messages.
    pub(super) fn has_reader(&self) -> bool {
        self.state.lock().reader.is_some()
    }

    /// Waits for the first message. If it is the answer, returns it with its error code, and reads it.
    pub(super) async fn only_answer(&self) -> Option<(Bytes, Option<ErrorCode>)> {
        self.wait_for(|state| match (state.messages.front(), state.is_complete) {
            (None, true) => Some(None),
            (None, false) => None,
            (Some(message), true) if state.messages.len() == 1 => Some(Some((message.clone(), state.error))),
            (Some(_), _) => Some(None),
        })
        .await
    }

    /// Returns a reader that takes the place of an earlier one, and reads from message number `from` on; if that is `None`,
    /// from the first message on that was not read.
    pub(super) fn read(self: &Arc<Self>, from: Option<usize>) -> EventLogReader {
        let mut state = self.state.lock();
        state.readers += 1;
        let number = state.readers;
        state.reader = Some(number);
        state.next = from.unwrap_or(state.next).clamp(state.first, state.end());
        drop(state);
        self.changed.notify_waiters();
        EventLogReader { log: self.clone(), number }
    }
}

impl Output for EventLog {
    fn send(&self, message: String) -> BoxFuture<'_, Result<(), Closed>> {
        self.push(message, None).boxed()
    }

    fn answer(&self, id: RequestId, answer: Result<String, ErrorData>) -> BoxFuture<'_, Result<(), Closed>> {
        let error = answer.as_ref().err().map(|error| error.code);
        self.push(answer_text(id, answer), Some(error)).boxed()
    }

    fn abandon(&self) {
        self.complete();
    }
}

/// Reads the messages of a stream.
pub(super) struct EventLogReader {
    log: Arc<EventLog>,
    number: usize,
}

impl EventLogReader {
    /// Returns the next message, with its number in the stream. `None` if none follows, or if another reader has taken the
    /// place of this one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<(usize, Bytes)> {
        let number = self.number;
        let read = self.log.wait_for(|state| {
            if state.reader != Some(number) {
                return Some(None);
            }
            let at = state.next;
            match state.messages.get(at - state.first) {
                Some(message) => {
                    state.next += 1;
                    Some(Some((at, message.clone())))
                }
                None => state.is_complete.then_some(None),
            }
        });
        let read = read.await;
        self.log.changed.notify_waiters();
        read
    }
}

impl Drop for EventLogReader {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        if state.reader == Some(self.number) {
            state.reader = None;
        }
        drop(state);
        self.log.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn text(read: Option<(usize, Bytes)>) -> Option<(usize, String)> {
        read.map(|(number, message)| (number, String::from_utf8(message.to_vec()).expect("UTF-8")))
    }

    #[tokio::test]
    async fn a_reader_continues_where_another_has_ended() {
        let log = Arc::new(EventLog::default());
        log.send("a".into()).await.expect("sent");
        log.send("b".into()).await.expect("sent");
        let mut first = log.read(None);
        assert_eq!(text(first.next().await), Some((0, "a".into())));
        let mut second = log.read(Some(1));
        assert_eq!(first.next().await, None, "another has taken its place");
        assert_eq!(text(second.next().await), Some((1, "b".into())));
        drop(second);
        assert!(!log.has_reader() && !log.is_read());
        log.answer(RequestId::Number(1), Ok("{}".into())).await.expect("sent");
        assert_eq!(log.send("after the answer".into()).await, Err(Closed));
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned();
        let mut third = log.read(None);
        assert_eq!(text(third.next().await), Some((2, answer.clone())), "what nobody has read");
        assert_eq!(third.next().await, None, "the log is complete");
        assert!(log.is_read());
        let mut again = log.read(Some(2));
        assert_eq!(text(again.next().await), Some((2, answer)), "it can be read again");
    }

    #[tokio::test]
    async fn the_sender_waits_for_a_slow_reader_and_for_none_drops_the_oldest() {
        let log = Arc::new(EventLog::default());
        let mut reader = log.read(None);
        for number in 0..MESSAGES_MAX {
            log.send(number.to_string()).await.expect("sent");
        }
        let mut waiting = log.send("one more".into());
        assert!(poll!(&mut waiting).is_pending());
        assert_eq!(text(reader.next().await), Some((0, "0".into())));
        assert_eq!(waiting.await, Ok(()));
        drop(reader);
        for number in 0..MESSAGES_MAX {
            log.send(format!("unread {number}")).await.expect("nobody reads, so nobody waits");
        }
        assert_eq!(text(log.read(Some(0)).next().await), Some((MESSAGES_MAX + 1, "unread 0".into())));
    }

    #[tokio::test]
    async fn only_an_answer_without_messages_before_it_is_one() {
        let log = EventLog::default();
        let error = ErrorData::new(ErrorCode(-5), "no", None);
        log.answer(RequestId::Number(1), Err(error)).await.expect("sent");
        assert_eq!(log.only_answer().await.map(|(_, error)| error), Some(Some(ErrorCode(-5))));
        let log = EventLog::default();
        log.send("a".into()).await.expect("sent");
        log.answer(RequestId::Number(1), Ok("{}".into())).await.expect("sent");
        assert_eq!(log.only_answer().await, None);
        let log = EventLog::default();
        log.abandon();
        assert_eq!(log.only_answer().await, None, "a cancelled request has no answer");
    }
}
