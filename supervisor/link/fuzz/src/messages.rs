//! Fuzzes the reading of messages: every outcome is one of those that `encoding.rs` lists, and a message that was read is
//! the same after it was written and read again.

use std::fmt::Debug;

use lockhouse_link::{
    Assembler, FrameHeader, FrameKind, FromFront, HEADER_BYTES, MessageLimits, Parts, Violation,
    read_from_engine, read_from_front, to_parts,
};
use lockhouse_messages::{Bodies, ExchangeId, Response, ToEngine, ToFront};
use serde::Serialize;

use crate::Coverage;

/// Separates the parts of a message in an input. No text in UTF-8 has this byte.
const SEPARATOR: u8 = 0xff;
/// Maximum number of characters of the reason for which a message is refused.
const REASON_CHARS_MAX: usize = 1_000;

/// Reads messages as an engine does.
pub fn engine_side(bytes: &[u8]) -> Coverage {
    messages(bytes).into_iter().flat_map(read_as_engine).collect()
}

/// Reads messages as a front does.
pub fn front_side(bytes: &[u8]) -> Coverage {
    messages(bytes).into_iter().flat_map(read_as_front).collect()
}

/// Returns the messages in an input. If its first byte is 0, the rest is the stream of a connection. Otherwise, the rest is
/// one message, whose parts are separated by [`SEPARATOR`], and the first byte is the length of its frames.
fn messages(bytes: &[u8]) -> Vec<Parts> {
    let mut assembler = Assembler::new(MessageLimits::new(1 << 20, 1 << 21));
    match bytes {
        [] => Vec::new(),
        [0, stream @ ..] => read_stream(&mut assembler, stream),
        [length, message @ ..] => {
            let parts: Parts = message.split(|byte| *byte == SEPARATOR).map(<[u8]>::to_vec).collect();
            let stream = to_stream(&parts, usize::from(*length));
            let read = read_stream(&mut assembler, &stream);
            assert_eq!(read, [parts], "a message is the same however it is divided into frames");
            read
        }
    }
}

fn read_stream(assembler: &mut Assembler, mut stream: &[u8]) -> Vec<Parts> {
    let mut messages = Vec::new();
    while let Some((header, rest)) = stream.split_first_chunk::<HEADER_BYTES>() {
        let Ok(header) = FrameHeader::decode(header) else { break };
        let Some((payload, rest)) = rest.split_at_checked(header.length) else { break };
        stream = rest;
        if matches!(header.kind, FrameKind::Ping | FrameKind::Pong) {
            continue;
        }
        match assembler.add(header, payload) {
            Ok(message) => messages.extend(message),
            Err(_) => break,
        }
    }
    messages
}

fn to_stream(parts: &Parts, frame_bytes: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut rest = part.as_slice();
        loop {
            let (piece, after) = rest.split_at(rest.len().min(frame_bytes));
            rest = after;
            let kind = match (rest.is_empty(), index + 1 == parts.len()) {
                (false, _) => FrameKind::Piece,
                (true, false) => FrameKind::PartEnd,
                (true, true) => FrameKind::MessageEnd,
            };
            stream.extend(FrameHeader { length: piece.len(), kind, exchange: ExchangeId(1) }.encode());
            stream.extend(piece);
            if rest.is_empty() {
                break;
            }
        }
    }
    stream
}

fn read_as_engine(parts: Parts) -> Coverage {
    match read_from_front(parts) {
        Ok(FromFront::Message(message)) => {
            let mut reached = Coverage::from([label(&message)]);
            match &message {
                ToEngine::Request(_, _, request) => reached.extend([label(request)]),
                ToEngine::Input(_, input) => reached.extend([label(input)]),
                _ => {}
            }
            assert_same(message, |parts| match read_from_front(parts) {
                Ok(FromFront::Message(message)) => message,
                other => panic!("{other:?}"),
            });
            reached
        }
        Ok(FromFront::Refused(_, Response::Invalid(reason))) => refused(&reason),
        Ok(FromFront::Refused(_, other)) => panic!("{other:?}"),
        Ok(FromFront::Skipped) => Coverage::from(["Skipped".to_owned()]),
        Err(Violation(reason)) => Coverage::from([reason.to_owned()]),
    }
}

fn read_as_front(parts: Parts) -> Coverage {
    match read_from_engine(parts) {
        Ok(Some(message)) => {
            let mut reached = Coverage::from([label(&message)]);
            match &message {
                ToFront::Event(_, event) => reached.extend([label(event)]),
                ToFront::Response(_, Response::Unavailable(reason)) => reached.extend(refused(reason)),
                ToFront::Response(_, response) => reached.extend([label(response)]),
                _ => {}
            }
            assert_same(message, |parts| match read_from_engine(parts) {
                Ok(Some(message)) => message,
                other => panic!("{other:?}"),
            });
            reached
        }
        Ok(None) => Coverage::from(["Skipped".to_owned()]),
        Err(Violation(reason)) => Coverage::from([reason.to_owned()]),
    }
}

fn refused(reason: &str) -> Coverage {
    assert!(reason.chars().count() <= REASON_CHARS_MAX, "a reason of {} bytes", reason.len());
    Coverage::from(["Refused".to_owned()])
}

/// Asserts that a message is the same after it was written and read.
fn assert_same<M: Bodies + Serialize + Debug>(message: M, read: impl Fn(Parts) -> M) {
    let before = format!("{message:?}");
    let parts = to_parts(message).expect("what was read can be written");
    let again = read(parts.clone());
    assert_eq!(before, format!("{again:?}"));
    assert_eq!(to_parts(again).expect("it can be written"), parts);
}

/// Returns the name of an enum variant.
fn label(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}
