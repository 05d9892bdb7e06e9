//! The queue of the messages that one end of a connection sends. It is bounded in bytes: a message waits until there is
//! room, so a peer that reads slowly slows down only those who write to it. The exchanges take turns, each with one frame.

use std::collections::{HashMap, VecDeque};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use lockhouse_messages::ExchangeId;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::assembler::Parts;
use crate::counted::Counted;
use crate::frame::{FrameHeader, FrameKind, PAYLOAD_BYTES_MAX};

/// Number of bytes in the queue above which further messages wait. One message may be longer.
const QUEUED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Number of bytes of the messages that wait for room above which further ones are not accepted. One message may be longer.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Number of bytes that messages which cannot wait may use in addition. If they need more, the connection ends, because
/// its peer does not read. An answer to an upstream server has up to 32 MiB.
const URGENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// If the peer reads nothing for this time, the connection ends.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// What each message is charged in addition to its bytes, for the memory that the queue itself needs.
const MESSAGE_OVERHEAD_BYTES: usize = 128;
/// Frames up to this number of bytes together are written with one system call.
const WRITE_BYTES: usize = 64 * 1024;

/// A future that completes when a message is in the queue.
pub type Waiting = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// What happened to a message for the queue of a connection.
pub enum Queued {
    /// The message is in the queue, or the connection has ended.
    Done,
    /// The future adds the message when there is room for it.
    Waits(Waiting),
    /// Too many bytes of messages wait already. This is the message.
    Refused(Parts),
}

/// Adds messages to the queue of a connection. Clones add to the same queue.
#[derive(Clone, Debug)]
pub struct OutboxSender(Arc<Outbox>);

/// Writes the messages of a queue to a connection.
#[derive(Debug)]
pub struct OutboxWriter(Arc<Outbox>);

#[derive(Debug)]
struct Outbox {
    state: Mutex<State>,
    /// Room for messages that can wait, in bytes.
    room: Arc<Semaphore>,
    /// Number of bytes of the messages that wait for room.
    waiting_bytes: Arc<AtomicUsize>,
    changed: Notify,
    /// Notified when urgent messages do not fit.
    overflowed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The exchanges with messages, in the order in which each sends its next frame.
    turns: VecDeque<ExchangeId>,
    messages: HashMap<ExchangeId, VecDeque<QueuedMessage>>,
    pings: VecDeque<FrameKind>,
    urgent_bytes: usize,
    /// Set when no message can be added any more: the connection has ended, or is to end after the last message.
    is_closed: bool,
}

#[derive(Debug)]
struct QueuedMessage {
    parts: VecDeque<Vec<u8>>,
    /// Number of bytes of the first part that are written.
    written: usize,
    urgent_bytes: usize,
    _room: Option<Arc<OwnedSemaphorePermit>>,
    /// Informed when the message is written; `None` if nobody waits for that.
    done: Option<oneshot::Sender<()>>,
}

/// Creates the queue of a connection.
pub fn outbox() -> (OutboxSender, OutboxWriter) {
    let room = Arc::new(Semaphore::new(QUEUED_BYTES_MAX));
    let outbox = Arc::new(Outbox {
        state: Mutex::default(),
        room,
        waiting_bytes: Arc::default(),
        changed: Notify::new(),
        overflowed: Notify::new(),
    });
    (OutboxSender(outbox.clone()), OutboxWriter(outbox))
}

fn charge(parts: &Parts) -> usize {
    parts.iter().map(Vec::len).sum::<usize>() + MESSAGE_OVERHEAD_BYTES
}

impl OutboxSender {
    /// Adds a message that cannot wait: a short one, which informs the peer. If the queue has no room even for such a
    /// message, the connection ends, because a peer that misses a message would wait for ever.
    pub fn send_urgent(&self, exchange: ExchangeId, parts: Parts) {
        self.add_urgent(exchange, parts, None);
    }

    /// Adds a message that cannot wait, and waits until it is written: the peer can then read it even if this process ends.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn send_urgent_and_wait(&self, exchange: ExchangeId, parts: Parts) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.add_urgent(exchange, parts, Some(done));
        written.await.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Adds a message if there is room for it.
    pub fn send(&self, exchange: ExchangeId, parts: Parts) -> Queued {
        let charged = charge(&parts);
        let bytes = u32::try_from(charged.min(QUEUED_BYTES_MAX)).unwrap_or(u32::MAX);
        if let Ok(room) = self.0.room.clone().try_acquire_many_owned(bytes) {
            self.0.add(exchange, QueuedMessage::new(parts, Some(Arc::new(room)), 0, None));
            return Queued::Done;
        }
        if self.0.room.is_closed() {
            return Queued::Done;
        }
        let Some(counted) = Counted::new(&self.0.waiting_bytes, charged, WAITING_BYTES_MAX) else {
            return Queued::Refused(parts);
        };
        let outbox = self.0.clone();
        Queued::Waits(Box::pin(async move {
            // The semaphore is closed when the connection has ended.
            if let Ok(room) = outbox.room.clone().acquire_many_owned(bytes).await {
                outbox.add(exchange, QueuedMessage::new(parts, Some(Arc::new(room)), 0, None));
            }
            drop(counted);
        }))
    }

    /// Adds a message for which the caller has reserved memory itself. The queue holds the reservation too, until the
    /// message is written.
    pub(crate) fn send_reserved(
        &self,
        exchange: ExchangeId,
        parts: Parts,
        memory: Option<Arc<OwnedSemaphorePermit>>,
    ) {
        self.0.add(exchange, QueuedMessage::new(parts, memory, 0, None));
    }

    /// Ends the connection after the messages that are in the queue.
    pub fn close(&self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_one();
    }

    pub(crate) fn send_ping(&self, kind: FrameKind) {
        let mut state = self.0.state.lock();
        // A peer that does not read gets at most one of each.
        if !state.pings.contains(&kind) {
            state.pings.push_back(kind);
        }
        drop(state);
        self.0.changed.notify_one();
    }

    fn add_urgent(&self, exchange: ExchangeId, parts: Parts, done: Option<oneshot::Sender<()>>) {
        let bytes = charge(&parts);
        let mut state = self.0.state.lock();
        // One message may be longer than the limit.
        if state.urgent_bytes > URGENT_BYTES_MAX {
            state.is_closed = true;
            self.0.overflowed.notify_one();
            return;
        }
        state.urgent_bytes += bytes;
        drop(state);
        self.0.add(exchange, QueuedMessage::new(parts, None, bytes, done));
    }
}

impl QueuedMessage {
    fn new(
        parts: Parts,
        room: Option<Arc<OwnedSemaphorePermit>>,
        urgent_bytes: usize,
        done: Option<oneshot::Sender<()>>,
    ) -> Self {
        Self { parts: parts.into(), written: 0, urgent_bytes, _room: room, done }
    }

    /// Appends the next frames of the message to `buffer`, up to one of a long part. Short parts follow each other, so that
    /// the peer has few incomplete messages. Returns whether the message is complete.
    fn write_frames(&mut self, exchange: ExchangeId, buffer: &mut Vec<u8>) -> bool {
        loop {
            let is_complete = self.write_frame(exchange, buffer);
            if is_complete || self.written > 0 || buffer.len() >= WRITE_BYTES {
                return is_complete;
            }
        }
    }

    /// Appends the next frame of the message to `buffer`. Returns whether it was the last one.
    fn write_frame(&mut self, exchange: ExchangeId, buffer: &mut Vec<u8>) -> bool {
        let part = self.parts.front().map(Vec::as_slice).unwrap_or_default();
        let piece = &part[self.written..];
        let piece = &piece[..piece.len().min(PAYLOAD_BYTES_MAX)];
        let ends_part = self.written + piece.len() == part.len();
        let kind = match (ends_part, self.parts.len() <= 1) {
            (false, _) => FrameKind::Piece,
            (true, false) => FrameKind::PartEnd,
            (true, true) => FrameKind::MessageEnd,
        };
        buffer.extend_from_slice(&FrameHeader { length: piece.len(), kind, exchange }.encode());
        buffer.extend_from_slice(piece);
        self.written += piece.len();
        if ends_part {
            self.parts.pop_front();
            self.written = 0;
        }
        kind == FrameKind::MessageEnd
    }
}

impl Outbox {
    fn add(&self, exchange: ExchangeId, message: QueuedMessage) {
        let mut state = self.state.lock();
        if !state.is_closed {
            let queue = state.messages.entry(exchange).or_default();
            queue.push_back(message);
            if queue.len() == 1 {
                state.turns.push_back(exchange);
            }
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl State {
    /// Appends the next frames to `buffer`, up to about [`WRITE_BYTES`]. Returns the senders to inform when the frames are
    /// written.
    fn take_frames(&mut self, buffer: &mut Vec<u8>) -> Vec<oneshot::Sender<()>> {
        let mut done = Vec::new();
        for kind in self.pings.drain(..) {
            buffer.extend_from_slice(&FrameHeader { length: 0, kind, exchange: ExchangeId(0) }.encode());
        }
        while buffer.len() < WRITE_BYTES
            && let Some(exchange) = self.turns.pop_front()
        {
            let Some(queue) = self.messages.get_mut(&exchange) else { continue };
            if let Some(message) = queue.front_mut()
                && message.write_frames(exchange, buffer)
                && let Some(message) = queue.pop_front()
            {
                self.urgent_bytes -= message.urgent_bytes;
                done.extend(message.done);
            }
            if queue.is_empty() {
                self.messages.remove(&exchange);
            } else {
                self.turns.push_back(exchange);
            }
        }
        done
    }
}

impl OutboxWriter {
    /// Writes messages until [`OutboxSender::close`] was called and the queue is empty.
    ///
    /// # Errors
    /// The connection is broken, or its peer does not read.
    pub async fn write_to(self, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let changed = self.0.changed.notified();
            let (done, is_closed) = {
                let mut state = self.0.state.lock();
                (state.take_frames(&mut buffer), state.is_closed)
            };
            if buffer.is_empty() {
                if is_closed {
                    return Ok(());
                }
                changed.await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.0.overflowed.notified() => return Err(does_not_read()),
                written = timeout(WRITE_TIMEOUT, to.write_all(&buffer)) => written.map_err(|_| does_not_read())??,
            }
            buffer.clear();
            // A long message leaves a long buffer.
            buffer.shrink_to(2 * WRITE_BYTES);
            for done in done {
                let _ = done.send(());
            }
        }
    }
}

fn does_not_read() -> Error {
    Error::new(ErrorKind::TimedOut, "the peer does not read")
}

impl Drop for OutboxWriter {
    fn drop(&mut self) {
        // Those who wait for room, or until a message is written, wait no longer.
        self.0.room.close();
        let mut state = self.0.state.lock();
        state.is_closed = true;
        (state.turns, state.messages) = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::{Assembler, MessageLimits};
    use crate::frame::HEADER_BYTES;

    fn sent(queued: Queued) {
        assert!(matches!(queued, Queued::Done));
    }

    fn waits(queued: Queued) -> Waiting {
        match queued {
            Queued::Waits(waiting) => waiting,
            Queued::Done | Queued::Refused(_) => panic!("it does not wait"),
        }
    }

    /// Reads the messages in `bytes`: each with its exchange, and the lengths of its parts.
    fn messages(mut bytes: &[u8]) -> Vec<(u64, Vec<usize>)> {
        let mut assembler = Assembler::new(MessageLimits::new(usize::MAX, usize::MAX));
        let mut messages = Vec::new();
        while let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
            let header = FrameHeader::decode(header).expect("a header");
            let (payload, rest) = rest.split_at(header.length);
            bytes = rest;
            if matches!(header.kind, FrameKind::Ping | FrameKind::Pong) {
                continue;
            }
            if let Some(parts) = assembler.add(header, payload).expect("a frame") {
                messages.push((header.exchange.0, parts.iter().map(Vec::len).collect()));
            }
        }
        messages
    }

    #[tokio::test]
    async fn a_long_message_delays_others_by_one_frame() {
        let (sender, writer) = outbox();
        let long = 3 * PAYLOAD_BYTES_MAX;
        sent(sender.send(ExchangeId(1), vec![b"{}".to_vec(), vec![0; long]]));
        sent(sender.send(ExchangeId(1), vec![b"1".to_vec()]));
        sent(sender.send(ExchangeId(2), vec![b"12".to_vec()]));
        sender.send_ping(FrameKind::Ping);
        sender.close();
        let mut written = Vec::new();
        writer.write_to(&mut written).await.expect("written");
        assert_eq!(messages(&written), [(2, vec![2]), (1, vec![2, long]), (1, vec![1])]);
    }

    #[tokio::test]
    async fn a_message_waits_for_room_and_a_lost_connection_ends_the_wait() {
        let (sender, writer) = outbox();
        sent(sender.send(ExchangeId(1), vec![vec![0; QUEUED_BYTES_MAX]]));
        let waiting = waits(sender.send(ExchangeId(2), vec![vec![0; 100]]));
        let (mut one, mut other) = tokio::io::duplex(1024);
        let writing = tokio::spawn(async move { writer.write_to(&mut one).await });
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut other, &mut read).await.map(|_| read)
        });
        waiting.await;
        sender.close();
        writing.await.expect("a task").expect("written");
        let read = reading.await.expect("a task").expect("read");
        assert_eq!(messages(&read), [(1, vec![QUEUED_BYTES_MAX]), (2, vec![100])]);

        let (sender, writer) = outbox();
        sent(sender.send(ExchangeId(1), vec![vec![0; QUEUED_BYTES_MAX]]));
        let waiting = waits(sender.send(ExchangeId(2), vec![vec![0; 100]]));
        drop(writer);
        waiting.await;
    }

    #[tokio::test]
    async fn messages_that_wait_are_bounded() {
        let (sender, writer) = outbox();
        sent(sender.send(ExchangeId(1), vec![vec![0; QUEUED_BYTES_MAX]]));
        let half = || vec![vec![0; WAITING_BYTES_MAX / 2 - MESSAGE_OVERHEAD_BYTES]];
        let waiting = [waits(sender.send(ExchangeId(2), half())), waits(sender.send(ExchangeId(3), half()))];
        assert!(
            matches!(sender.send(ExchangeId(4), vec![vec![7]]), Queued::Refused(parts) if parts == [[7]])
        );
        drop(waiting);
        // One message may be longer than the limit.
        drop(waits(sender.send(ExchangeId(5), vec![vec![0; WAITING_BYTES_MAX + 1]])));
        drop(writer);
        sent(sender.send(ExchangeId(6), half()));
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_loses_the_connection() {
        let (mut one, _other) = tokio::io::duplex(16);
        let (sender, writer) = outbox();
        sender.send_urgent(ExchangeId(0), vec![vec![0]]);
        let writing = tokio::spawn(async move { writer.write_to(&mut one).await });
        tokio::task::yield_now().await;
        for _ in 0..6 {
            // Added while a write waits for the peer.
            sender.send_urgent(ExchangeId(0), vec![vec![0; URGENT_BYTES_MAX / 4]]);
        }
        let error = writing.await.expect("a task").expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_reading_loses_the_connection() {
        let (mut one, mut other) = tokio::io::duplex(16);
        let (sender, writer) = outbox();
        sent(sender.send(ExchangeId(1), vec![vec![0; 100]]));
        let begun = tokio::time::Instant::now();
        let writing = tokio::spawn(async move { writer.write_to(&mut one).await });
        let _ = tokio::io::AsyncReadExt::read(&mut other, &mut [0; 16]).await;
        let error = writing.await.expect("a task").expect_err("an error");
        assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::TimedOut, WRITE_TIMEOUT));
    }

    #[test]
    fn short_parts_of_a_message_follow_each_other() {
        let (sender, _writer) = outbox();
        for exchange in [1, 2] {
            sent(sender.send(ExchangeId(exchange), vec![b"a".to_vec(), b"b".to_vec()]));
        }
        let mut written = Vec::new();
        sender.0.state.lock().take_frames(&mut written);
        let exchanges = written.chunks(HEADER_BYTES + 1).map(|frame| frame[HEADER_BYTES - 1]);
        assert_eq!(exchanges.collect::<Vec<_>>(), [1, 1, 2, 2]);
    }
}
