//! Frames: messages between a front and an engine in different processes, over a Unix domain socket. A frame is the
//! length of a message in four bytes (big endian), and the message as JSON.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use lockhouse_messages::ExchangeId;

/// Maximum length of a message, in bytes. The largest one has the result of a direct call, or the arguments of one.
pub const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Number of bytes in the queue of a connection above which it accepts no further frame: the peer does not read.
const QUEUED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What each frame is charged in addition to its bytes, for the memory that the queue itself needs.
const FRAME_OVERHEAD_BYTES: usize = 64;
const LENGTH_BYTES: usize = 4;
/// Number of bytes that are reserved for a frame before its content arrives: a peer cannot make this process allocate
/// more with a length alone.
const RESERVED_BYTES_MAX: usize = 64 * 1024;

/// Converts a message to a frame.
///
/// # Errors
/// The message is longer than [`FRAME_BYTES_MAX`].
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidData, "the message is too long"))?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Reads the message of the next frame, as JSON. Returns `None` at the end of the stream. Not cancel-safe.
///
/// # Errors
/// The stream ends within a frame, or the frame is longer than `bytes_max`.
pub async fn read(from: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> Result<Option<Vec<u8>>> {
    let mut length = [0; LENGTH_BYTES];
    if from.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..]).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max {
        return Err(Error::new(ErrorKind::InvalidData, "a message is too long"));
    }
    let mut message = Vec::with_capacity(length.min(RESERVED_BYTES_MAX));
    from.take(length as u64).read_to_end(&mut message).await?;
    if message.len() < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(Some(message)) }
}

/// Returns the exchange that a message belongs to, also if the message cannot be parsed as a whole, for example because
/// a value in it is nested too deeply. `None` if it belongs to no exchange.
pub fn exchange_of(message: &[u8]) -> Option<ExchangeId> {
    #[derive(Deserialize)]
    enum Outline {
        Request(ExchangeId, IgnoredAny, IgnoredAny),
        Input(ExchangeId, IgnoredAny),
        Event(ExchangeId, IgnoredAny),
        Response(ExchangeId, IgnoredAny),
    }
    match serde_json::from_slice(message).ok()? {
        Outline::Request(id, ..)
        | Outline::Input(id, _)
        | Outline::Event(id, _)
        | Outline::Response(id, _) => Some(id),
    }
}

/// Creates the queue of the frames that one connection sends.
pub fn queue() -> (FrameSender, FrameWriter) {
    let (frames, waiting) = mpsc::unbounded_channel();
    let state = Arc::new(QueueState::default());
    (FrameSender { frames, state: state.clone() }, FrameWriter { waiting, state })
}

#[derive(Debug)]
struct QueuedFrame {
    frame: Vec<u8>,
    /// Informed when the frame is written; `None` if nobody waits for that.
    written: Option<oneshot::Sender<()>>,
}

#[derive(Debug, Default)]
struct QueueState {
    bytes: AtomicUsize,
    /// Cancelled when a frame did not fit.
    overflowed: CancellationToken,
}

/// Adds frames to the queue of a connection. Clones add to the same queue.
#[derive(Clone, Debug)]
pub struct FrameSender {
    frames: mpsc::UnboundedSender<QueuedFrame>,
    state: Arc<QueueState>,
}

impl FrameSender {
    /// Adds a frame to the queue. If the queue is full, the frame is dropped and the connection ends, because a peer
    /// that misses a message would wait for ever.
    pub fn send(&self, frame: Vec<u8>) {
        self.add(QueuedFrame { frame, written: None });
    }

    /// Adds a frame to the queue, and waits until it is written: the peer can then read it even if this process ends.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn send_and_wait(&self, frame: Vec<u8>) -> Result<()> {
        let (sender, written) = oneshot::channel();
        self.add(QueuedFrame { frame, written: Some(sender) });
        written.await.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    fn add(&self, queued: QueuedFrame) {
        let frame = &queued.frame;
        let before = self.state.bytes.fetch_add(frame.len() + FRAME_OVERHEAD_BYTES, Ordering::Relaxed);
        // One frame may be longer than the limit of the queue.
        if before > QUEUED_BYTES_MAX {
            self.state.overflowed.cancel();
        } else {
            // Without a writer, the connection has ended.
            let _ = self.frames.send(queued);
        }
    }
}

/// Writes the frames of a queue to a connection.
#[derive(Debug)]
pub struct FrameWriter {
    waiting: mpsc::UnboundedReceiver<QueuedFrame>,
    state: Arc<QueueState>,
}

impl FrameWriter {
    /// Writes frames until the last [`FrameSender`] is dropped and the queue is empty.
    ///
    /// # Errors
    /// The connection is broken, or its peer does not read.
    pub async fn write_to(mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        let overflowed = self.state.overflowed.clone();
        let writing = async {
            while let Some(QueuedFrame { frame, written }) = self.waiting.recv().await {
                to.write_all(&frame).await?;
                self.state.bytes.fetch_sub(frame.len() + FRAME_OVERHEAD_BYTES, Ordering::Relaxed);
                if let Some(written) = written {
                    let _ = written.send(());
                }
            }
            Ok::<(), Error>(())
        };
        match overflowed.run_until_cancelled(writing).await {
            Some(written) => written,
            None => Err(Error::new(ErrorKind::TimedOut, "the peer does not read")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order() {
        let (mut one, mut other) = tokio::io::duplex(16);
        let (sender, writer) = queue();
        for message in ["a".repeat(100), String::new(), "z".to_owned()] {
            sender.send(encode(&message).expect("a frame"));
        }
        drop(sender);
        let writing = tokio::spawn(async move { writer.write_to(&mut one).await });
        let mut received = Vec::new();
        while let Some(message) = read(&mut other, FRAME_BYTES_MAX).await.expect("a frame") {
            received.push(serde_json::from_slice::<String>(&message).expect("text").len());
        }
        assert_eq!(received, [100, 0, 1]);
        writing.await.expect("a task").expect("written");
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_or_incomplete_is_an_error() {
        for bytes in [&[0xff, 0xff, 0xff, 0xff][..], &[0, 0], &[0, 0, 0, 9, b'1']] {
            assert!(read(&mut &*bytes, 1_000).await.is_err(), "{bytes:?}");
        }
        assert_eq!(read(&mut &[][..], 1_000).await.expect("the end"), None);
        assert_eq!(read(&mut &[0, 0, 0, 1, b'1'][..], 1_000).await.expect("a frame"), Some(b"1".to_vec()));
    }

    #[test]
    fn a_message_that_is_nested_too_deeply_still_has_its_exchange() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let message = format!(r#"{{"Response":[7,{{"Json":{deep}}}]}}"#);
        assert!(serde_json::from_str::<lockhouse_messages::ToFront>(&message).is_err());
        assert_eq!(exchange_of(message.as_bytes()), Some(ExchangeId(7)));
        assert_eq!(exchange_of(br#""Draining""#), None);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_loses_the_connection() {
        let (mut one, _other) = tokio::io::duplex(16);
        let (sender, writer) = queue();
        let frame = encode(&"x".repeat(QUEUED_BYTES_MAX / 2)).expect("a frame");
        for _ in 0..4 {
            sender.send(frame.clone());
        }
        let error = writer.write_to(&mut one).await.expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
