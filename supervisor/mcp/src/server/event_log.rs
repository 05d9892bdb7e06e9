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

/// Maximum number of messages that are kept. If there are more, the sender waits for the reader; without a reader, the oldest
/// is dropped.
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
    pub(super) fn read(self: &Arc<Self>, from: Option<usize>) -> EventReader {
        let mut state = self.state.lock();
        state.readers += 1;
        let number = state.readers;
        state.reader = Some(number);
        state.next = from.unwrap_or(state.next).clamp(state.first, state.end());
        drop(state);
        self.changed.notify_waiters();
        EventReader { log: self.clone(), number }
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
pub(super) struct EventReader {
    log: Arc<EventLog>,
    number: usize,
}

impl EventReader {
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

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        if state.reader == Some(self.number) {
            state.reader = None;
        }
        drop(state);
        self.log.changed.notify_waiters();
    }
}
