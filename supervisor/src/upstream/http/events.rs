//! Server-sent events, each within a limit. What is over it is told as such, and what follows is read on.

use std::collections::VecDeque;

use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// What is kept of an event over the limit: enough to find whose answer it is.
const KEEP_BYTES: usize = 256;

/// Bytes that a line without data counts besides its own: a short one takes time as well.
const LINE_BYTES: usize = 16;

/// How soon a server may ask to be connected to again: without a limit, it would be without a pause.
const RETRY_MILLISECONDS_MIN: u64 = 1_000;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(super) type SseItem = Result<Sse, SseError>;

/// One event of the stream.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Whole(Sse),
    /// Over the limit: its beginning.
    TooLarge(Vec<u8>),
}

/// Takes pieces of a stream, and gives events.
pub(super) struct Events {
    bytes_max: usize,
    ready: VecDeque<Event>,
    line: Vec<u8>,
    is_first_line: bool,
    follows_carriage_return: bool,
    event: Sse,
    data: Option<Vec<u8>>,
    over_limit: Option<Vec<u8>>,
    /// Bytes since they were last asked for that belong to no event.
    ignored: usize,
}

impl Events {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            ready: VecDeque::new(),
            line: Vec::new(),
            is_first_line: true,
            follows_carriage_return: false,
            event: Sse::default(),
            data: None,
            over_limit: None,
            ignored: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Bytes since the last time that belong to no event: comments, other fields, and what is over the limit.
    pub(super) fn take_ignored(&mut self) -> usize {
        std::mem::take(&mut self.ignored)
    }

    /// Whether the event that is being read is over the limit.
    pub(super) fn is_over_limit(&self) -> bool {
        self.over_limit.is_some()
    }

    /// Bytes of the event that is being read.
    pub(super) fn held(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len) + self.line.len()
    }

    pub(super) fn feed(&mut self, mut chunk: &[u8]) {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.follows_carriage_return) && *first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.keep(chunk);
            };
            self.keep(&chunk[..end]);
            self.follows_carriage_return = chunk[end] == b'\r';
            self.end_line();
            chunk = &chunk[end + 1..];
        }
    }

    /// Adds a piece of the current line, unless its event is too long.
    fn keep(&mut self, piece: &[u8]) {
        if self.over_limit.is_some() {
            // A mark in place of the line: only an empty one ends the event.
            if self.line.is_empty() && !piece.is_empty() {
                self.line.push(b':');
            }
            self.ignored += piece.len();
            return;
        }
        if self.held() + piece.len() <= self.bytes_max {
            return self.line.extend_from_slice(piece);
        }
        let data = self.data.take();
        let is_first_line = data.is_none();
        let mut head = data.unwrap_or_else(|| std::mem::take(&mut self.line));
        head.extend_from_slice(&piece[..piece.len().min(KEEP_BYTES)]);
        head.truncate(KEEP_BYTES);
        if is_first_line && let Some(value) = head.strip_prefix(b"data:") {
            head = value.trim_ascii_start().to_vec();
        }
        self.over_limit = Some(head);
        self.line = b":".to_vec();
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.ignored += LINE_BYTES;
            return self.end_event();
        }
        if self.over_limit.is_some() {
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&*line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if name != b"data" {
            self.ignored += line.len() + LINE_BYTES;
        }
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.event.event = Some(text()),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => {
                let retry = text().trim().parse().ok().map(|retry: u64| retry.max(RETRY_MILLISECONDS_MIN));
                self.event.retry = retry.or(self.event.retry);
            }
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let mut event = std::mem::take(&mut self.event);
        let data = self.data.take().map(|data| {
            String::from_utf8(data).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
        });
        event.data = data;
        if let Some(head) = self.over_limit.take() {
            self.ready.push_back(Event::TooLarge(head));
        } else if event != Sse::default() {
            self.ready.push_back(Event::Whole(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &str, bytes_max: usize, piece: usize) -> Vec<Event> {
        let mut events = Events::new(bytes_max);
        stream.as_bytes().chunks(piece).for_each(|chunk| events.feed(chunk));
        std::iter::from_fn(|| events.next()).collect()
    }

    #[test]
    fn events_are_read_however_they_are_cut_and_whatever_ends_their_lines() {
        let stream = "\u{feff}: hi\n\nid: 1\r\nretry: 2000\r\ndata:\r\n\r\ndata: a\rdata: b\r\rodd\nevent: e\ndata: ü\n\n";
        let whole = [
            Sse { id: Some("1".into()), retry: Some(2_000), data: Some(String::new()), event: None },
            Sse { data: Some("a\nb".into()), ..Sse::default() },
            Sse { event: Some("e".into()), data: Some("ü".into()), ..Sse::default() },
        ];
        for piece in 1..stream.len() {
            assert_eq!(read(stream, 100, piece), whole.clone().map(Event::Whole), "in pieces of {piece}");
        }
    }

    #[test]
    fn a_server_cannot_ask_to_be_connected_to_again_at_once() {
        for (asked, kept) in [("0", Some(1_000)), ("999", Some(1_000)), ("5000", Some(5_000)), ("soon", None)]
        {
            let events = read(&format!("retry: {asked}\nid: 1\ndata: x\n\n"), 100, 64);
            let [Event::Whole(event)] = &*events else { panic!("{events:?}") };
            assert_eq!(event.retry, kept, "retry: {asked}");
        }
    }

    #[test]
    fn an_event_over_the_limit_is_told_once_and_the_next_one_is_read() {
        let large = format!("data: {{\"id\":7,{}\ndata: more\n\ndata: next\n\n", "x".repeat(1000));
        for piece in [1, 7, 5000] {
            let events = read(&large, 300, piece);
            let [Event::TooLarge(head), Event::Whole(next)] = &*events else { panic!("{events:?}") };
            assert!(head.len() <= KEEP_BYTES && head.starts_with(b"{\"id\":7,"));
            assert_eq!(next.data.as_deref(), Some("next"));
        }
        let many = format!("{}data: x\n\n", "data: 12345678\n".repeat(100));
        assert!(matches!(&*read(&many, 300, 64), [Event::TooLarge(_)]));
        let comments = format!("{}data: x\n\n", ": 12345678\n".repeat(100));
        assert!(matches!(&*read(&comments, 300, 64), [Event::Whole(_)]));
    }
}
