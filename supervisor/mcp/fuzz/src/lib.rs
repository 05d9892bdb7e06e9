//! Invariants of reading what an upstream server or an AI client sends that must hold for every input. Each function takes bytes, panics when
//! an invariant is violated, and returns the kinds of results that the input produced. Ordinary tests pass the seeds, and
//! changes of them, to the same functions, and check that these inputs cover all kinds of results.

mod seeds;

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use lockhouse_base::line_buffer::{CompleteLine, LineBuffer};
use lockhouse_mcp::client::http::header_parameters::HeaderTools;
use lockhouse_mcp::client::http::sse_parser::{SseEvent, SseParser};
use lockhouse_mcp::client::inbound_message::{InboundMessage, RxMessage, TYPED_BYTES_MAX, parse};
use lockhouse_mcp::client::response_id_scan::find_ids_at_ends;
use lockhouse_mcp::server::client_message::{ClientMessage, InvalidMessage};
use lockhouse_mcp::server::http_head::{self, HttpLifecycle};
use rmcp::model::RequestId;
use serde_json::Value;

pub use seeds::seeds;

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
    let (cost, message) = parse(line.to_vec());
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

/// Reads an event stream. The first byte of the input is the size of the pieces in which the rest arrives.
pub fn server_events(bytes: &[u8]) -> Coverage {
    let [size, text @ ..] = bytes else { return Coverage::new() };
    let (whole, pieces) = (events(text, text.len().max(1)), events(text, usize::from(*size) + 1));
    assert_eq!(whole, pieces, "events are the same however they arrive");
    whole.into_iter().map(|event| event_kind(event).to_owned()).collect()
}

fn events(text: &[u8], size: usize) -> Vec<SseEvent> {
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    for piece in text.chunks(size) {
        parser.feed(piece, LINE_BYTES_MAX);
        // A line counts for more than its bytes, which is added at its end.
        assert!(parser.held() <= LINE_BYTES_MAX + 32, "no more than one event is held");
        events.extend(std::iter::from_fn(|| parser.next_event()).map(without_head));
    }
    events
}

/// Leaves out the beginning of an event over the limit, which depends on the pieces.
fn without_head(event: SseEvent) -> SseEvent {
    match event {
        SseEvent::TooLarge(head) => {
            assert!(head.len() <= 256, "only the beginning is kept");
            SseEvent::TooLarge(Vec::new())
        }
        event => event,
    }
}

fn event_kind(event: SseEvent) -> &'static str {
    match event {
        SseEvent::TooLarge(_) => "too large",
        SseEvent::CompleteLine(event) => match (event.event, event.data) {
            (None, Some(data)) => read(data.as_bytes()),
            (Some(_), _) => "named",
            (None, None) => "only an id or a delay",
        },
    }
}

/// Reads a list of tools, some of which may have parameters that are sent as headers.
pub fn tool_list(bytes: &[u8]) -> Coverage {
    let Ok(list) = std::str::from_utf8(bytes) else { return Coverage::new() };
    let accepted = HeaderTools::default().accept(list.to_owned());
    assert_eq!(HeaderTools::default().accept(accepted.clone()), accepted, "what was accepted is valid");
    let kind = match (accepted == list, list.contains("x-mcp-header")) {
        (true, true) => "accepted with annotations",
        (true, false) => "without annotations",
        (false, _) => "with invalid annotations",
    };
    Coverage::from([kind.to_owned()])
}

/// Reads an HTTP request of an AI client: lines with headers, an empty line, and a message.
pub fn client_requests(bytes: &[u8]) -> Coverage {
    let end = bytes.windows(2).position(|window| window == b"\n\n");
    let (head, message) = end.map_or((&b""[..], bytes), |end| (&bytes[..end], &bytes[end + 2..]));
    let headers = read_headers(head);
    let mut reached = Coverage::new();
    for (kind, checked) in
        [("post", http_head::check_post(&headers)), ("get", http_head::check_get(&headers))]
    {
        reached.insert(format!("{kind} {}", if checked.is_ok() { "accepted" } else { "refused" }));
    }
    let message = match ClientMessage::parse(message) {
        Ok(message) => message,
        Err(InvalidMessage { error, .. }) => {
            assert!([-32_700, -32_600].contains(&error.code.0));
            reached.insert("invalid".to_owned());
            return reached;
        }
    };
    let lifecycle = http_head::check_message(&headers, &message).ok();
    reached.insert(match (&message, lifecycle) {
        (ClientMessage::Notification(_), _) => "notification".to_owned(),
        (ClientMessage::Answer(..), _) => "answer".to_owned(),
        (ClientMessage::Request(request), lifecycle) => {
            // The header by which proxies route says what the message says.
            if let (Some(named), Some(_)) = (request.meta.protocol_version(), lifecycle) {
                let header = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
                assert_eq!(header, Some(named.as_str()));
            }
            let is_known = if request.parameters.is_ok() { "known" } else { "unknown" };
            format!("{is_known} request {}", lifecycle.map_or("refused", lifecycle_name))
        }
    });
    reached
}

fn lifecycle_name(lifecycle: HttpLifecycle) -> &'static str {
    match lifecycle {
        HttpLifecycle::Session => "of a session",
        HttpLifecycle::SelfContained => "by itself",
    }
}

fn read_headers(head: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
