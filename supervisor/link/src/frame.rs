//! The frames of a connection. Each frame has at most 1 MiB, so that a long message delays the others only by one frame.
//!
//! A frame is a header (the length of its payload in four bytes, its kind in one, and its exchange in eight; big endian)
//! and the payload. A message consists of parts: the first is the message as JSON, without its large values; each further
//! part is one large value, as bytes. A part is sent in one or more frames.

use lockhouse_messages::ExchangeId;

/// Maximum length of a frame in bytes, with its header.
/// Bound: engines and fronts.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Length of the header of a frame in bytes.
pub const HEADER_BYTES: usize = 13;
/// Maximum length of the payload of a frame, in bytes.
pub(crate) const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_MAX - HEADER_BYTES;

/// What a frame contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A piece of a part. The next frame of the exchange continues the part.
    Piece,
    /// The last piece of a part. The next frame of the exchange begins the next part of the message.
    PartEnd,
    /// The last piece of the last part of a message.
    MessageEnd,
    /// Asks the peer for a [`Pong`](Self::Pong). Without payload.
    Ping,
    /// Shows that the peer still reads and writes. Without payload.
    Pong,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload in bytes.
    pub length: usize,
    pub kind: FrameKind,
    /// The exchange that the frame belongs to; 0 if it belongs to none.
    pub exchange: ExchangeId,
}

/// Why a connection cannot continue: the peer does not keep to the format of frames and messages, or sends too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

impl FrameHeader {
    /// Writes the header.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        // A payload has at most 1 MiB.
        bytes[..4].copy_from_slice(&u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes());
        bytes[4] = match self.kind {
            FrameKind::Piece => 0,
            FrameKind::PartEnd => 1,
            FrameKind::MessageEnd => 2,
            FrameKind::Ping => 3,
            FrameKind::Pong => 4,
        };
        bytes[5..].copy_from_slice(&self.exchange.0.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// The kind is unknown, or the payload is too long.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Violation> {
        let [l0, l1, l2, l3, kind, exchange @ ..] = *bytes;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let kind = match kind {
            0 => FrameKind::Piece,
            1 => FrameKind::PartEnd,
            2 => FrameKind::MessageEnd,
            3 => FrameKind::Ping,
            4 => FrameKind::Pong,
            _ => return Err(Violation("a frame of an unknown kind")),
        };
        let length_max = match kind {
            FrameKind::Ping | FrameKind::Pong => 0,
            FrameKind::Piece | FrameKind::PartEnd | FrameKind::MessageEnd => PAYLOAD_BYTES_MAX,
        };
        if length > length_max {
            return Err(Violation("a frame that is too long"));
        }
        Ok(Self { length, kind, exchange: ExchangeId(u64::from_be_bytes(exchange)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_the_same_after_it_was_written_and_read() {
        for kind in [FrameKind::Piece, FrameKind::PartEnd, FrameKind::MessageEnd] {
            let header = FrameHeader { length: PAYLOAD_BYTES_MAX, kind, exchange: ExchangeId(u64::MAX - 1) };
            assert_eq!(FrameHeader::decode(&header.encode()), Ok(header));
        }
        let ping = FrameHeader { length: 0, kind: FrameKind::Ping, exchange: ExchangeId(0) };
        assert_eq!(FrameHeader::decode(&ping.encode()), Ok(ping));
    }

    #[test]
    fn a_header_that_is_not_valid_is_refused() {
        let long =
            FrameHeader { length: PAYLOAD_BYTES_MAX + 1, kind: FrameKind::Piece, exchange: ExchangeId(1) };
        assert!(FrameHeader::decode(&long.encode()).is_err());
        let ping = FrameHeader { length: 1, kind: FrameKind::Ping, exchange: ExchangeId(0) };
        assert!(FrameHeader::decode(&ping.encode()).is_err());
        assert!(FrameHeader::decode(&[0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
