//! Fuzzes the assembly of frames: a simple model must give the same messages, and the bounds must hold.

use std::collections::HashMap;

use lockhouse_link::{
    Assembler, FrameHeader, FrameKind, HEADER_BYTES, MessageLimits, PART_OVERHEAD_BYTES, Parts,
};
use lockhouse_messages::ExchangeId;

use crate::Coverage;

/// The limits that an input selects by its first byte: of the bytes of one message, and of all incomplete messages.
const LIMITS: [(usize, usize); 4] = [(0, 0), (16, 200), (4_096, 8_192), (1 << 20, 1 << 24)];
/// Few, so that short inputs reach them.
const PARTS_MAX: usize = 20;
const INCOMPLETE_MAX: usize = 10;

/// Reads the rest of the input as frames. If the second byte is even, it is the stream itself. Otherwise, each frame is one
/// byte for its kind, one for its exchange, one for how often it is repeated, one for its length, and its payload.
pub fn frames(bytes: &[u8]) -> Coverage {
    let [limits, form, rest @ ..] = bytes else { return Coverage::new() };
    let (message_bytes_max, bytes_max) = LIMITS[usize::from(*limits) % LIMITS.len()];
    let limits = MessageLimits {
        message_bytes: message_bytes_max,
        incomplete_bytes: bytes_max,
        parts: PARTS_MAX,
        incomplete_messages: INCOMPLETE_MAX,
        silence: std::time::Duration::from_secs(60),
    };
    let mut assembly = Assembly {
        assembler: Assembler::new(limits),
        model: Model { message_bytes_max, bytes_max, ..Model::default() },
        reached: Coverage::new(),
    };
    match form % 2 {
        0 => assembly.read_stream(rest),
        _ => assembly.read_commands(rest),
    }
    assembly.reached
}

/// Maximum number of times that a frame is sent; enough to reach each limit.
const REPETITIONS_MAX: u8 = 32;

struct Assembly {
    assembler: Assembler,
    model: Model,
    reached: Coverage,
}

impl Assembly {
    fn read_stream(&mut self, mut stream: &[u8]) {
        while let Some((header, rest)) = stream.split_first_chunk::<HEADER_BYTES>() {
            let header = match FrameHeader::decode(header) {
                Ok(decoded) => {
                    assert_eq!(decoded.encode(), *header, "a header has one encoding");
                    decoded
                }
                Err(violation) => {
                    self.reached.insert(violation.0.to_owned());
                    return;
                }
            };
            let Some((payload, rest)) = rest.split_at_checked(header.length) else { return };
            stream = rest;
            if !self.add(header, payload) {
                return;
            }
        }
    }

    fn read_commands(&mut self, mut commands: &[u8]) {
        while let [kind, exchange, repetitions, length, rest @ ..] = commands {
            let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
            commands = rest;
            let kind = match kind % 5 {
                0 => FrameKind::Piece,
                1 => FrameKind::PartEnd,
                2 => FrameKind::MessageEnd,
                3 => FrameKind::Ping,
                _ => FrameKind::Pong,
            };
            // An odd number repeats the frame for one exchange after the other.
            for index in 0..=u64::from(repetitions % REPETITIONS_MAX) {
                let exchange = u64::from(*exchange) + if repetitions % 2 == 1 { index } else { 0 };
                let header = FrameHeader { length: payload.len(), kind, exchange: ExchangeId(exchange) };
                if !self.add(header, payload) {
                    return;
                }
            }
        }
    }

    /// Adds a frame. Returns false if it ends the connection.
    fn add(&mut self, header: FrameHeader, payload: &[u8]) -> bool {
        let expected = self.model.add(header, payload);
        let added = self.assembler.add(header, payload);
        let result = match (&added, &expected) {
            (Ok(added), Ok(expected)) => {
                assert_eq!(added, expected);
                added.as_ref().map_or("incomplete", |_| "message")
            }
            (Err(violation), Err(())) => violation.0,
            (added, expected) => panic!("{added:?} instead of {expected:?}"),
        };
        self.reached.insert(result.to_owned());
        added.is_ok()
    }
}

/// The incomplete messages, as simply as possible.
#[derive(Default)]
struct Model {
    message_bytes_max: usize,
    bytes_max: usize,
    incomplete: HashMap<u64, ModelMessage>,
    /// The number of bytes of all incomplete messages.
    bytes: usize,
}

#[derive(Default)]
struct ModelMessage {
    parts: Vec<Part>,
    bytes: usize,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl Model {
    fn add(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Option<Parts>, ()> {
        let exchange = header.exchange.0;
        let ModelMessage { parts, bytes } = self.incomplete.entry(exchange).or_default();
        *bytes += payload.len();
        self.bytes += payload.len() + if parts.is_empty() { PART_OVERHEAD_BYTES } else { 0 };
        if parts.last().is_none_or(|part| part.is_complete) {
            parts.push(Part::default());
        }
        let count = parts.len();
        let last = parts.last_mut().expect("a part");
        last.bytes.extend(payload);
        last.is_complete = header.kind != FrameKind::Piece;
        if header.kind == FrameKind::PartEnd {
            self.bytes += PART_OVERHEAD_BYTES;
        }
        if matches!(header.kind, FrameKind::Ping | FrameKind::Pong)
            || *bytes > self.message_bytes_max
            || self.bytes > self.bytes_max
            || (header.kind != FrameKind::Piece && count > PARTS_MAX)
            || self.incomplete.len() > INCOMPLETE_MAX
        {
            return Err(());
        }
        if header.kind != FrameKind::MessageEnd {
            return Ok(None);
        }
        let message = self.incomplete.remove(&exchange).unwrap_or_default();
        let parts: Parts = message.parts.into_iter().map(|part| part.bytes).collect();
        self.bytes -= message.bytes + parts.len() * PART_OVERHEAD_BYTES;
        Ok(Some(parts))
    }
}
