//! Puts the frames of a connection together to messages. The frames of different exchanges may alternate.

use std::collections::HashMap;
use std::time::Duration;

use lockhouse_messages::ExchangeId;

use crate::frame::{FrameHeader, FrameKind, Violation};

/// The parts of a message: the message as JSON without its large values, and then each of these.
pub type Parts = Vec<Vec<u8>>;

/// Maximum number of parts of a message between front and engine.
/// Bound: engines and fronts.
const PARTS_MAX: usize = 4_096;
/// Maximum number of messages of which a part has arrived. A peer has at most one for each open exchange.
/// Bound: engines and fronts.
const INCOMPLETE_MAX: usize = 2_048;
/// What each part of an incomplete message is charged in addition to its bytes, for the memory that its place needs: a peer
/// could otherwise fill the memory with empty parts.
pub const PART_OVERHEAD_BYTES: usize = 64;

/// If nothing has arrived for this time, the peer counts as lost: the end of its process is noticed at once, and so only a
/// peer that hangs is silent for so long.
/// Bound: engines and fronts.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Limits of what the peer sends.
#[derive(Clone, Copy, Debug)]
pub struct MessageLimits {
    /// Maximum number of bytes of one message.
    pub message_bytes: usize,
    /// Maximum number of bytes of all messages that have not arrived completely, with [`PART_OVERHEAD_BYTES`] for each of
    /// their parts.
    pub incomplete_bytes: usize,
    /// Maximum number of parts of one message.
    pub parts: usize,
    /// Maximum number of messages that have not arrived completely.
    pub incomplete_messages: usize,
    /// Maximum time for which nothing arrives.
    pub silence: Duration,
}

impl MessageLimits {
    /// Returns limits with the usual numbers of parts and of incomplete messages.
    pub const fn new(message_bytes: usize, incomplete_bytes: usize) -> Self {
        let (parts, incomplete_messages, silence) = (PARTS_MAX, INCOMPLETE_MAX, SILENCE_MAX);
        Self { message_bytes, incomplete_bytes, parts, incomplete_messages, silence }
    }

    /// Returns the same limits with another time for which nothing arrives.
    #[must_use]
    pub const fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }
}

/// The messages of a connection that have not arrived completely.
#[derive(Debug)]
pub struct Assembler {
    incomplete: HashMap<ExchangeId, Incomplete>,
    /// Number of bytes of all incomplete messages, with [`PART_OVERHEAD_BYTES`] for each of their parts.
    bytes: usize,
    limits: MessageLimits,
}

#[derive(Debug, Default)]
struct Incomplete {
    complete_parts: Parts,
    part: Vec<u8>,
    bytes: usize,
}

impl Incomplete {
    /// Number of bytes that this counts among those of all incomplete messages.
    fn charge(&self) -> usize {
        self.bytes + (1 + self.complete_parts.len()) * PART_OVERHEAD_BYTES
    }
}

impl Assembler {
    pub fn new(limits: MessageLimits) -> Self {
        Self { incomplete: HashMap::new(), bytes: 0, limits }
    }

    /// Takes the next frame that is no ping or pong. Returns the message that it completes, if it does.
    ///
    /// # Errors
    /// The message, or all incomplete messages together, have too many bytes or parts.
    pub fn add(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Option<Parts>, Violation> {
        let is_new = !self.incomplete.contains_key(&header.exchange);
        if is_new && self.incomplete.len() >= self.limits.incomplete_messages {
            return Err(Violation("too many incomplete messages"));
        }
        let message = self.incomplete.entry(header.exchange).or_default();
        message.bytes += payload.len();
        let overhead = usize::from(is_new) + usize::from(header.kind == FrameKind::PartEnd);
        self.bytes += payload.len() + overhead * PART_OVERHEAD_BYTES;
        if message.bytes > self.limits.message_bytes {
            return Err(Violation("a message that is too long"));
        }
        if self.bytes > self.limits.incomplete_bytes {
            return Err(Violation("too many bytes of incomplete messages"));
        }
        message.part.extend_from_slice(payload);
        match header.kind {
            FrameKind::Piece => return Ok(None),
            FrameKind::PartEnd | FrameKind::MessageEnd => {}
            FrameKind::Ping | FrameKind::Pong => return Err(Violation("a ping is no part of a message")),
        }
        if message.complete_parts.len() >= self.limits.parts {
            return Err(Violation("a message with too many parts"));
        }
        if header.kind == FrameKind::PartEnd {
            message.complete_parts.push(std::mem::take(&mut message.part));
            return Ok(None);
        }
        let mut message = self.incomplete.remove(&header.exchange).unwrap_or_default();
        self.bytes -= message.charge();
        message.complete_parts.push(message.part);
        Ok(Some(message.complete_parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(
        to: &mut Assembler,
        kind: FrameKind,
        exchange: u64,
        payload: &[u8],
    ) -> Result<Option<Parts>, Violation> {
        to.add(FrameHeader { length: payload.len(), kind, exchange: ExchangeId(exchange) }, payload)
    }

    #[test]
    fn frames_of_different_exchanges_may_alternate() {
        let mut assembler = Assembler::new(MessageLimits::new(100, 1_000));
        for (kind, exchange, payload) in [
            (FrameKind::Piece, 1, b"ab".as_slice()),
            (FrameKind::PartEnd, 2, b"x"),
            (FrameKind::PartEnd, 1, b"c"),
            (FrameKind::Piece, 2, b""),
        ] {
            assert_eq!(add(&mut assembler, kind, exchange, payload), Ok(None));
        }
        let last = add(&mut assembler, FrameKind::MessageEnd, 1, b"d");
        assert_eq!(last, Ok(Some(vec![b"abc".to_vec(), b"d".to_vec()])));
        let last = add(&mut assembler, FrameKind::MessageEnd, 2, b"");
        assert_eq!(last, Ok(Some(vec![b"x".to_vec(), Vec::new()])));
        assert_eq!((assembler.incomplete.len(), assembler.bytes), (0, 0));
    }

    #[test]
    fn a_peer_cannot_fill_the_memory() {
        let assembler = || Assembler::new(MessageLimits::new(10, 15 + 2 * PART_OVERHEAD_BYTES));
        assert!(add(&mut assembler(), FrameKind::MessageEnd, 1, &[0; 11]).is_err(), "one message");
        for (bytes, is_accepted) in [(5, true), (6, false)] {
            let mut assembler = assembler();
            assert_eq!(add(&mut assembler, FrameKind::Piece, 1, &[0; 10]), Ok(None));
            assert_eq!(add(&mut assembler, FrameKind::Piece, 2, &vec![0; bytes]).is_ok(), is_accepted);
        }
        let mut assembler = assembler();
        let parts = (0..4).map(|_| add(&mut assembler, FrameKind::PartEnd, 1, b"").is_ok());
        assert_eq!(parts.collect::<Vec<_>>(), [true, false, false, false], "memory of empty parts");
        let large = || Assembler::new(MessageLimits::new(10, usize::MAX));
        let mut assembler = large();
        let parts = (0..=PARTS_MAX).map(|_| add(&mut assembler, FrameKind::PartEnd, 1, b""));
        assert_eq!(parts.filter(Result::is_err).count(), 1, "parts");
        let mut assembler = large();
        let exchanges = (0..=INCOMPLETE_MAX as u64).map(|id| add(&mut assembler, FrameKind::Piece, id, b""));
        assert_eq!(exchanges.filter(Result::is_err).count(), 1, "incomplete messages");
    }
}
