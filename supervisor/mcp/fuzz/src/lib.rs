//! Invariants of reading the lines of an upstream server that must hold for every input. The function takes bytes, panics when
//! an invariant is violated, and returns the kinds of results that the input produced. An ordinary test replays the corpus
//! through the same function and checks that the corpus still covers all kinds of results.

use std::collections::BTreeSet;

use lockhouse_base::line_buffer::{CompleteLine, LineBuffer};
use lockhouse_mcp::inbound_message::{InboundMessage, RxMessage, TYPED_BYTES_MAX, parse};
use lockhouse_mcp::response_id_scan::find_ids_at_ends;
use rmcp::model::RequestId;
use serde_json::Value;

/// The names of the kinds of results that an input produced.
pub type Coverage = BTreeSet<String>;

/// Maximum length of a line; short, so that short inputs exceed it.
const LINE_BYTES_MAX: usize = 1_024;

/// Reads lines. The first byte of the input is the size of the pieces in which the rest arrives.
pub fn server_lines(bytes: &[u8]) -> Coverage {
    let [size, text @ ..] = bytes else { return Coverage::new() };
    let mut buffer = LineBuffer::new(LINE_BYTES_MAX);
    let mut reached = Coverage::new();
    for line in text.split(|byte| *byte == b'\n') {
        line.chunks(usize::from(*size) + 1).for_each(|piece| buffer.add(piece));
        match buffer.take() {
            CompleteLine::Within(complete) => {
                assert_eq!(complete, line, "a line is the same however it arrives");
                reached.insert(read(&complete).to_owned());
            }
            CompleteLine::TooLong(head, tail) => {
                assert!(line.len() > LINE_BYTES_MAX && line.starts_with(&head) && line.ends_with(&tail));
                reached.insert(read_ends(line, &head, &tail).to_owned());
            }
        }
    }
    reached
}

/// Reads a line within the limit. A simple parser must agree about the kind of the message.
fn read(line: &[u8]) -> &'static str {
    let (cost, message) = parse(line);
    assert!(cost >= line.len(), "every byte costs something");
    let tree = serde_json::from_slice::<Value>(line).ok().filter(Value::is_object);
    match message {
        InboundMessage::Answer(_, Ok(raw)) => {
            // A tree has no room for a number out of range, or for the same member twice.
            if let Some(result) = tree.as_ref().and_then(|tree| tree.get("result")) {
                assert_eq!(serde_json::from_str::<Value>(&raw).ok().as_ref(), Some(result));
            }
            "result"
        }
        InboundMessage::Answer(_, Err(_)) => "error",
        InboundMessage::Unsolicited(Some(message)) => match *message {
            RxMessage::Request(request) => {
                assert!(matches!(request.id, RequestId::Number(_) | RequestId::String(_)));
                "request"
            }
            RxMessage::Notification(_) => "notification",
            _ => "something else with a method",
        },
        InboundMessage::Unsolicited(None) => "dropped",
        InboundMessage::Violation(_) => "violation",
    }
}

/// Looks for the id in the ends of a line over the limit. What is found must be in them.
fn read_ends(line: &[u8], head: &[u8], tail: &[u8]) -> &'static str {
    assert!(line.len() < TYPED_BYTES_MAX, "inputs are short");
    let mut kind = "too long without an id";
    for id in find_ids_at_ends(head, tail) {
        let RequestId::Number(id) = id else { panic!("ids of our requests are numbers") };
        let digits = id.to_string();
        let is_in = |end: &[u8]| end.windows(digits.len()).any(|window| window == digits.as_bytes());
        assert!(is_in(head) || is_in(tail), "{id}");
        kind = "too long with an id";
    }
    kind
}
