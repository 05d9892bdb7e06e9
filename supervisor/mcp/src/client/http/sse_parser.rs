//! Parser for the server-sent events of an upstream server, with a size limit for each event. An event over the limit
//! is reported as too large, and parsing continues with the next event.

use std::collections::VecDeque;

use sse_stream::Sse;

/// Number of bytes that are kept of the data of an event over the size limit. These bytes suffice to find the ID of the
/// request that the event answers.
const KEEP_BYTES: usize = 256;

/// Number of bytes that are counted for a line in addition to its length, since parsing short lines takes time as well.
/// For a line of data, they count towards the size limit of its event; the first line of data is exempt. For other
/// lines, they count towards the server's traffic limits.
const LINE_BYTES: usize = 16;

/// Minimum of the event field `retry`, in milliseconds. Smaller values are raised to it, so that a server cannot make
/// Lockhouse reconnect without delay.
const RETRY_MILLISECONDS_MIN: u64 = 1_000;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event of an upstream server's event stream.
#[derive(Debug, PartialEq)]
pub enum SseEvent {
    CompleteLine(Sse),
    /// An event over the size limit. Contains the beginning of its data; all further data of the event is skipped.
    TooLarge(Vec<u8>),
}

/// Receives the chunks of an event stream and returns its events.
pub struct SseParser {
    ready: VecDeque<SseEvent>,
    line: Vec<u8>,
    is_first_line: bool,
    follows_carriage_return: bool,
    event: Sse,
    data: Option<Vec<u8>>,
    /// Number of bytes that are counted towards the size limit for the data lines of the current event, in addition to
    /// the length of the lines.
    lines_bytes: usize,
    /// Number of bytes counted for the current event since it was reported as too large: the length of its lines, plus
    /// [`LINE_BYTES`] for each line. `None` if the event is not too large.
    skipped: Option<usize>,
    /// Number of bytes counted for lines that are no data of an event, such as comments, since the last call of
    /// [`Self::take_ignored`].
    ignored: usize,
}

impl Default for SseParser {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            line: Vec::new(),
            is_first_line: true,
            follows_carriage_return: false,
            event: Sse::default(),
            data: None,
            lines_bytes: 0,
            skipped: None,
            ignored: 0,
        }
    }
}

impl SseParser {
    /// Returns the next event that is complete; `None` if there is none yet.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Returns the number of bytes to charge for lines that are no data of an event and were received since the last
    /// call of this function. Such lines are comments, empty lines, and fields other than `data`. Each counts its
    /// length plus [`LINE_BYTES`].
    pub fn take_ignored(&mut self) -> usize {
        std::mem::take(&mut self.ignored)
    }

    /// Returns the number of bytes that count towards the size limit of the current event: the buffered bytes, plus
    /// [`LINE_BYTES`] for each line of data after the first.
    pub fn held(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len) + self.lines_bytes + self.line.len()
    }

    /// Returns the number of bytes that are buffered for the current event and for complete events that the caller has
    /// not taken yet.
    pub fn kept(&self) -> usize {
        let data = |event: &SseEvent| match event {
            SseEvent::CompleteLine(event) => event.data.as_ref().map_or(0, String::len),
            SseEvent::TooLarge(head) => head.len(),
        };
        self.held() + self.ready.iter().map(data).sum::<usize>()
    }

    /// Returns the number of bytes counted for the current event since it was reported as too large; 0 if the event is
    /// not too large.
    pub fn skipped(&self) -> usize {
        self.skipped.unwrap_or(0)
    }

    /// Parses the next chunk of the stream. An event for which [`Self::held`] would exceed `bytes_max` is reported as
    /// too large.
    pub fn feed(&mut self, mut chunk: &[u8], bytes_max: usize) {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.follows_carriage_return) && *first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                return self.keep(chunk, bytes_max);
            };
            self.keep(&chunk[..end], bytes_max);
            self.follows_carriage_return = chunk[end] == b'\r';
            self.end_line();
            chunk = &chunk[end + 1..];
        }
    }

    /// Appends a piece to the current line. If the event would then exceed `bytes_max` bytes, reports the event as too
    /// large, and skips this piece and the further data of the event.
    fn keep(&mut self, piece: &[u8], bytes_max: usize) {
        if self.skipped.is_none() && self.held() + piece.len() <= bytes_max {
            return self.line.extend_from_slice(piece);
        }
        if self.skipped.is_none() {
            let head = self.head(piece);
            self.ready.push_back(SseEvent::TooLarge(head));
            (self.data, self.lines_bytes, self.skipped) = (None, 0, Some(0));
        }
        // Replaces the line by a placeholder, since only an empty line ends the event.
        let is_empty = self.line.is_empty() && piece.is_empty();
        self.line = if is_empty { Vec::new() } else { b":".to_vec() };
        self.skipped = Some(self.skipped() + piece.len());
    }

    /// Returns the beginning of the current event's data, up to 256 bytes, as if `piece` had been appended to the
    /// current line.
    fn head(&self, piece: &[u8]) -> Vec<u8> {
        let start = |text: &[u8]| text[..text.len().min(KEEP_BYTES)].to_vec();
        let (line, data) = (start(&[start(&self.line), start(piece)].concat()), self.data.as_deref());
        let value = line.strip_prefix(b"data:").unwrap_or_default();
        start(&[&*start(data.unwrap_or_default()), value.trim_ascii_start()].concat())
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
        if let Some(skipped) = &mut self.skipped {
            *skipped += LINE_BYTES;
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
                    self.lines_bytes += LINE_BYTES;
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
        self.lines_bytes = 0;
        if self.skipped.take().is_none() && event != Sse::default() {
            self.ready.push_back(SseEvent::CompleteLine(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &str, bytes_max: usize, piece: usize) -> Vec<SseEvent> {
        let mut events = SseParser::default();
        stream.as_bytes().chunks(piece).for_each(|chunk| events.feed(chunk, bytes_max));
        std::iter::from_fn(|| events.next_event()).collect()
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
            assert_eq!(
                read(stream, 100, piece),
                whole.clone().map(SseEvent::CompleteLine),
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_server_cannot_ask_to_be_connected_to_again_at_once() {
        for (asked, kept) in [("0", Some(1_000)), ("999", Some(1_000)), ("5000", Some(5_000)), ("soon", None)]
        {
            let events = read(&format!("retry: {asked}\nid: 1\ndata: x\n\n"), 100, 64);
            let [SseEvent::CompleteLine(event)] = &*events else { panic!("{events:?}") };
            assert_eq!(event.retry, kept, "retry: {asked}");
        }
    }

    #[test]
    fn an_event_over_the_limit_is_told_as_soon_as_it_is_and_no_more_of_it_is_kept() {
        for piece in [1, 7, 5_000] {
            let mut events = SseParser::default();
            let begin = format!("id: 1\ndata: {{\"jsonrpc\":\"2.0\",\ndata: \"id\":7,{}", "x".repeat(1_000));
            begin.as_bytes().chunks(piece).for_each(|chunk| events.feed(chunk, 300));
            let event = events.next_event();
            let Some(SseEvent::TooLarge(head)) = &event else { panic!("{event:?}") };
            assert!(head.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":7,x"), "{event:?}");
            assert!(events.skipped() >= 700 && events.kept() <= 1 && events.take_ignored() < 30);
            let skipped = events.skipped();
            (0..100).for_each(|_| events.feed(b"more\ndata\n", 300));
            assert!(events.skipped() >= skipped + 100 * (8 + 2 * LINE_BYTES));
            assert!(events.next_event().is_none() && events.kept() <= 1 && events.take_ignored() == 0);
            events.feed(b"\ndata: next\n\n", 300);
            let next = SseEvent::CompleteLine(Sse { data: Some("next".into()), ..Sse::default() });
            assert_eq!((events.skipped(), events.kept(), events.next_event()), (0, 4, Some(next)));
        }
    }

    #[test]
    fn a_line_of_data_counts_more_than_its_bytes_and_the_first_one_does_not() {
        for (lines, is_whole) in [(1, true), (10, true), (100, false)] {
            for piece in [1, 64, 5_000] {
                let events = read(&format!("{}\ndata: x\n\n", "data\n".repeat(lines)), 300, piece);
                let [first, SseEvent::CompleteLine(next)] = &*events else { panic!("{events:?}") };
                assert_eq!(matches!(first, SseEvent::CompleteLine(_)), is_whole, "{lines} lines: {first:?}");
                assert_eq!(next.data.as_deref(), Some("x"));
            }
        }
        // The last line exceeds the limit, and the event ends with the next byte.
        let events = read(&format!("{}\ndata: x\n\n", "data\n".repeat(3)), 2 * LINE_BYTES + 1, 64);
        assert!(matches!(&*events, [SseEvent::TooLarge(_), SseEvent::CompleteLine(_)]), "{events:?}");
    }

    #[test]
    fn an_event_over_the_limit_is_told_once_and_the_next_one_is_read() {
        let large = format!("data: {{\"id\":7,{}\ndata: more\n\ndata: next\n\n", "x".repeat(1000));
        for piece in [1, 7, 5000] {
            let events = read(&large, 300, piece);
            let [SseEvent::TooLarge(head), SseEvent::CompleteLine(next)] = &*events else {
                panic!("{events:?}")
            };
            assert!(head.len() <= KEEP_BYTES && head.starts_with(b"{\"id\":7,"));
            assert_eq!(next.data.as_deref(), Some("next"));
        }
        let many = format!("{}data: x\n\n", "data: 12345678\n".repeat(100));
        assert!(matches!(&*read(&many, 300, 64), [SseEvent::TooLarge(_)]));
        let comments = format!("{}data: x\n\n", ": 12345678\n".repeat(100));
        assert!(matches!(&*read(&comments, 300, 64), [SseEvent::CompleteLine(_)]));
    }
}
