//! One end of a connection between two processes: reads and writes frames, and finds out whether the peer still lives.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use lockhouse_messages::ExchangeId;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use crate::assembler::{Assembler, MessageLimits, Parts};
use crate::frame::{FrameHeader, FrameKind, HEADER_BYTES, Violation};
use crate::outbox::{OutboxSender, OutboxWriter};

/// After this part of the time for which a peer may be silent, it is asked for a sign of life.
const PING_SHARE: u32 = 3;
/// Maximum time for which another host is silent. The end of its process is noticed at once; the end of the machine or of its network is
/// not.
/// Bound: hosts of a cluster.
const HOST_SILENCE_MAX: Duration = Duration::from_secs(15);

/// The messages of fronts: a line of an AI client has up to 32 MiB.
pub const FROM_FRONT: MessageLimits = MessageLimits::new(40 * 1024 * 1024, 80 * 1024 * 1024);
/// The messages of operators: short requests and answers.
pub const FROM_OPERATOR: MessageLimits = MessageLimits::new(64 * 1024, 128 * 1024);
/// The messages of the engine. The longest has the result of a direct call.
pub const FROM_ENGINE: MessageLimits = MessageLimits::new(256 * 1024 * 1024, 320 * 1024 * 1024);

/// The messages of another host that passes requests on, and those of the engine of another host.
pub const FROM_HOST: MessageLimits = FROM_FRONT.with_silence(HOST_SILENCE_MAX);
pub(crate) const FROM_ENGINE_OF_HOST: MessageLimits = FROM_ENGINE.with_silence(HOST_SILENCE_MAX);

impl From<Violation> for Error {
    fn from(Violation(what): Violation) -> Self {
        Self::new(ErrorKind::InvalidData, format!("the peer sent {what}"))
    }
}

/// Takes the messages that arrive on a connection, in order.
pub trait Receiver: Send {
    /// Takes a message. While this runs, nothing is read.
    ///
    /// # Errors
    /// The message ends the connection.
    fn receive(&mut self, exchange: ExchangeId, parts: Parts) -> impl Future<Output = Result<()>> + Send;
}

/// Serves a connection until the peer closes it, or the queue is closed and empty. Passes each message to `receiver`.
///
/// # Errors
/// The connection is broken, the peer does not keep to the format or the limits, it is silent for too long, or the
/// receiver failed.
pub async fn serve(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    limits: MessageLimits,
    sender: &OutboxSender,
    outbox: OutboxWriter,
    receiver: &mut impl Receiver,
) -> Result<()> {
    let heard = Mutex::new(Instant::now());
    tokio::select! {
        read = read_all(reader, limits, sender, &heard, receiver) => read,
        written = outbox.write_to(writer) => written,
        error = watch(sender, &heard, limits.silence) => Err(error),
    }
}

async fn read_all(
    reader: &mut (impl AsyncRead + Unpin),
    limits: MessageLimits,
    sender: &OutboxSender,
    heard: &Mutex<Instant>,
    receiver: &mut impl Receiver,
) -> Result<()> {
    let mut assembler = Assembler::new(limits);
    let (mut header, mut payload) = ([0; HEADER_BYTES], Vec::new());
    loop {
        if reader.read(&mut header[..1]).await? == 0 {
            return Ok(());
        }
        reader.read_exact(&mut header[1..]).await?;
        let frame = FrameHeader::decode(&header)?;
        payload.resize(frame.length, 0);
        reader.read_exact(&mut payload).await?;
        *heard.lock() = Instant::now();
        match frame.kind {
            FrameKind::Ping => sender.send_ping(FrameKind::Pong),
            FrameKind::Pong => {}
            FrameKind::Piece | FrameKind::PartEnd | FrameKind::MessageEnd => {
                if let Some(parts) = assembler.add(frame, &payload)? {
                    receiver.receive(frame.exchange, parts).await?;
                    // Time that this end took does not count against the peer.
                    *heard.lock() = Instant::now();
                }
            }
        }
    }
}

/// Asks the peer for signs of life. Returns the error when it is silent for too long.
async fn watch(sender: &OutboxSender, heard: &Mutex<Instant>, silence: Duration) -> Error {
    loop {
        let since = *heard.lock();
        sleep_until(since + silence / PING_SHARE).await;
        if *heard.lock() != since {
            continue;
        }
        sender.send_ping(FrameKind::Ping);
        sleep_until(since + silence).await;
        if *heard.lock() == since {
            let reason = format!("nothing was heard from it for {} s", silence.as_secs());
            return Error::new(ErrorKind::TimedOut, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::outbox;

    const LIMITS: MessageLimits = MessageLimits::new(1_000, 2_000);

    #[derive(Default)]
    struct FirstParts(Vec<Vec<u8>>);

    impl Receiver for FirstParts {
        async fn receive(&mut self, _: ExchangeId, mut parts: Parts) -> Result<()> {
            self.0.push(parts.swap_remove(0));
            Ok(())
        }
    }

    /// Serves one end of a connection, and returns how it ended and the first parts of the messages that arrived.
    async fn serve_end(stream: tokio::io::DuplexStream) -> (Result<()>, Vec<Vec<u8>>) {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (sender, outbox) = outbox();
        let mut received = FirstParts::default();
        let served = serve(&mut reader, &mut writer, LIMITS, &sender, outbox, &mut received).await;
        (served, received.0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_is_silent_is_lost_and_one_that_answers_pings_is_not() {
        let (one, _silent) = tokio::io::duplex(1024);
        let begun = Instant::now();
        let (served, _) = serve_end(one).await;
        assert_eq!(served.expect_err("an error").kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), LIMITS.silence.as_secs());

        let (one, other) = tokio::io::duplex(1024);
        let serving = tokio::spawn(serve_end(one));
        let peer = tokio::spawn(serve_end(other));
        tokio::time::sleep(10 * LIMITS.silence).await;
        assert!(!serving.is_finished());
        peer.abort();
        // The connection ends, perhaps while an answer to a ping is written.
        assert_eq!(serving.await.expect("a task").1, Vec::<Vec<u8>>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_within_a_frame_is_lost() {
        // It sends one byte of a long frame every ten seconds.
        let (one, mut other) = tokio::io::duplex(1024);
        let serving = tokio::spawn(serve_end(one));
        let begun = Instant::now();
        let header = FrameHeader { length: 1_000, kind: FrameKind::MessageEnd, exchange: ExchangeId(1) };
        let mut bytes = header.encode().to_vec();
        bytes.resize(100, b'x');
        for byte in bytes {
            if tokio::io::AsyncWriteExt::write_all(&mut other, &[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let (served, received) = serving.await.expect("a task");
        assert_eq!(served.expect_err("an error").kind(), ErrorKind::TimedOut);
        assert!(received.is_empty() && begun.elapsed() < 2 * LIMITS.silence, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_ends_the_connection() {
        for (bytes, is_accepted) in [(1_000, true), (1_001, false)] {
            let (one, other) = tokio::io::duplex(4096);
            let (mut reader, mut writer) = tokio::io::split(other);
            let (sender, outbox) = outbox();
            sender.send_urgent(ExchangeId(1), vec![vec![b'x'; bytes]]);
            sender.close();
            let peer = async {
                let mut received = FirstParts::default();
                serve(&mut reader, &mut writer, LIMITS, &sender, outbox, &mut received).await?;
                tokio::io::AsyncWriteExt::shutdown(&mut writer).await
            };
            let ((served, received), _) = tokio::join!(serve_end(one), peer);
            assert_eq!((served.is_ok(), received.len()), (is_accepted, usize::from(is_accepted)), "{bytes}");
        }
    }
}
