//! Validates the heads of HTTP/1 requests before hyper parses them, against request smuggling.
//!
//! hyper accepts a bare LF as the end of a line, and prefers `Transfer-Encoding` to `Content-Length`; RFC 9112 permits
//! both behaviours. A proxy that parses such a head differently would see other requests on the connection. Ambiguous
//! heads are therefore refused: all bytes from the fault on are replaced by NUL, which every parser rejects, and
//! [`INVALID_HEAD`] completes the head. hyper then answers 400 after the requests in flight and closes the connection.

/// Maximum length of a line, as a multiple of hyper's limit for a whole head. The maximum is above
/// hyper's limit, so that hyper refuses a long line first (431).
const LINE_FACTOR: usize = 4;

/// Bytes that complete an invalid head. They are needed because hyper reports a fault only once it has the whole head.
const INVALID_HEAD: &[u8] = b"\0\r\n\r\n";

/// Validates the HTTP/1 request heads in the bytes that a connection receives.
#[derive(Debug)]
pub(super) struct HeadValidator {
    state: State,
    /// The part of [`INVALID_HEAD`] that hyper has not read yet, after a fault.
    refusal: &'static [u8],
    /// The received part of the current line.
    line: Vec<u8>,
    line_max: usize,
    framing: Framing,
}

/// What comes next in the received bytes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    RequestLine {
        is_first: bool,
    },
    Header,
    /// The body of a request, of which this number of bytes is left.
    Body(u64),
    ChunkSize,
    /// A chunk of a body with its final CRLF, of which this number of bytes is left.
    Chunk(u64),
    Trailer,
    /// The connection uses HTTP/2, which is not validated here.
    Http2,
    Rejection,
}

/// The length of the body, as a request head declares it.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    length: Option<u64>,
    is_chunked: bool,
}

/// Why a request head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadFault {
    #[error("a line ends with LF alone")]
    BareLf,
    #[error("a line has a CR that does not end it")]
    BareCr,
    #[error("a line is too long")]
    TooLong,
    #[error("a header is continued on another line")]
    Folded,
    #[error("a header has no name, or has whitespace before its colon")]
    Name,
    #[error("the length of the body is given more than once, or in two ways")]
    Ambiguous,
    #[error("Content-Length is not a number")]
    Length,
    #[error("Transfer-Encoding is not `chunked`")]
    Encoding,
    #[error("the size of a chunk is not a number")]
    ChunkSize,
}

impl HeadValidator {
    pub(super) fn new(head_bytes: usize) -> Self {
        Self {
            state: State::RequestLine { is_first: true },
            refusal: INVALID_HEAD,
            line: Vec::new(),
            line_max: head_bytes.saturating_mul(LINE_FACTOR),
            framing: Framing::default(),
        }
    }

    /// After a fault, returns the bytes that hyper reads in place of received ones: at most `room` bytes, and
    /// finally an empty slice, which is the end of the stream. Returns `None` if there was no fault.
    pub(super) fn replacement(&mut self, room: usize) -> Option<&'static [u8]> {
        if self.state != State::Rejection {
            return None;
        }
        let (part, rest) = self.refusal.split_at(room.min(self.refusal.len()));
        self.refusal = rest;
        Some(part)
    }

    /// Validates received bytes. If there is a fault, overwrites all bytes from the fault on.
    ///
    /// # Errors
    /// The fault. It is returned once per connection.
    pub(super) fn validate(&mut self, mut bytes: &mut [u8]) -> Result<(), HeadFault> {
        while !bytes.is_empty() {
            let taken = match self.state {
                State::Http2 => return Ok(()),
                State::Rejection => {
                    bytes.fill(0);
                    return Ok(());
                }
                State::Body(left) => {
                    let taken = left.min(bytes.len() as u64);
                    self.state = match left - taken {
                        0 => State::RequestLine { is_first: false },
                        left => State::Body(left),
                    };
                    taken as usize
                }
                State::Chunk(left) => {
                    let taken = left.min(bytes.len() as u64);
                    self.state = match left - taken {
                        0 => State::ChunkSize,
                        left => State::Chunk(left),
                    };
                    taken as usize
                }
                State::RequestLine { .. } | State::Header | State::ChunkSize | State::Trailer => {
                    match self.take_line(bytes) {
                        Ok(taken) => taken,
                        Err((at, fault)) => {
                            self.state = State::Rejection;
                            bytes[at..].fill(0);
                            return Err(fault);
                        }
                    }
                }
            };
            bytes = &mut bytes[taken..];
        }
        Ok(())
    }

    /// Reads the rest of the current line, or as much of it as was received. Returns the number of bytes read. On a
    /// fault, returns as `Err` its position in `bytes` and the fault.
    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, (usize, HeadFault)> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if self.line.len() + part.len() > self.line_max {
            return Err((0, HeadFault::TooLong));
        }
        self.line.extend_from_slice(part);
        let Some(end) = end else { return Ok(bytes.len()) };
        let line = std::mem::take(&mut self.line);
        let at_end = |fault| (end, fault);
        let content = line.strip_suffix(b"\r").ok_or(at_end(HeadFault::BareLf))?;
        if content.contains(&b'\r') {
            return Err(at_end(HeadFault::BareCr));
        }
        self.state = self.next_state(content).map_err(at_end)?;
        // Reuse the buffer for the next line.
        self.line = line;
        self.line.clear();
        Ok(end + 1)
    }

    /// Validates a complete line, and returns the state that follows it.
    fn next_state(&mut self, line: &[u8]) -> Result<State, HeadFault> {
        match self.state {
            State::RequestLine { is_first: true } if line == b"PRI * HTTP/2.0" => Ok(State::Http2),
            // Empty lines before a request are ignored (RFC 9112).
            State::RequestLine { .. } if line.is_empty() => Ok(self.state),
            State::RequestLine { .. } => {
                self.framing = Framing::default();
                Ok(State::Header)
            }
            State::Header if line.is_empty() => Ok(match self.framing {
                Framing { is_chunked: true, .. } => State::ChunkSize,
                Framing { length: Some(length @ 1..), .. } => State::Body(length),
                _ => State::RequestLine { is_first: false },
            }),
            State::Header => {
                let (name, value) = parse_header(line)?;
                self.framing.parse_header(name, value)?;
                Ok(State::Header)
            }
            State::ChunkSize => match parse_chunk_size(line)? {
                0 => Ok(State::Trailer),
                // Plus CRLF after the chunk, which hyper checks.
                size => size.checked_add(2).map(State::Chunk).ok_or(HeadFault::ChunkSize),
            },
            State::Trailer if line.is_empty() => Ok(State::RequestLine { is_first: false }),
            State::Trailer => parse_header(line).map(|_| State::Trailer),
            other => Ok(other),
        }
    }
}

impl Framing {
    fn parse_header(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        if !is_length && !name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Ok(());
        }
        if self.is_chunked || self.length.is_some() {
            return Err(HeadFault::Ambiguous);
        }
        let value = value.trim_ascii();
        if is_length {
            let digits =
                std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|it| it.is_ascii_digit()));
            self.length = Some(digits.and_then(|digits| digits.parse().ok()).ok_or(HeadFault::Length)?);
        } else if value.eq_ignore_ascii_case(b"chunked") {
            self.is_chunked = true;
        } else {
            return Err(HeadFault::Encoding);
        }
        Ok(())
    }
}

fn parse_header(line: &[u8]) -> Result<(&[u8], &[u8]), HeadFault> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(HeadFault::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadFault::Name)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    match !name.is_empty() && name.iter().all(u8::is_ascii_graphic) {
        true => Ok((name, value)),
        false => Err(HeadFault::Name),
    }
}

/// Parses the size of a chunk (hexadecimal) and ignores chunk extensions.
fn parse_chunk_size(line: &[u8]) -> Result<u64, HeadFault> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at(digits);
    let is_end = rest.trim_ascii_start().first().is_none_or(|first| *first == b';');
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_end);
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(HeadFault::ChunkSize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Validates a text in pieces of `piece` bytes. Returns the fault and the bytes that hyper would read.
    fn validate(sent: &str, piece: usize) -> (Option<HeadFault>, Vec<u8>) {
        let mut heads = HeadValidator::new(64);
        let (mut fault, mut bytes) = (None, sent.as_bytes().to_vec());
        for piece in bytes.chunks_mut(piece) {
            fault = fault.or(heads.validate(piece).err());
        }
        (fault, bytes)
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn unambiguous_heads_pass_unchanged() {
        for sent in [
            GET.to_owned(),
            format!("\r\n\r\n{GET}{GET}"),
            format!("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n\n\n\n \r{GET}"),
            format!("POST / HTTP/1.1\r\ncontent-length:0\r\n\r\n{GET}"),
            format!(
                "POST / HTTP/1.1\r\nTRANSFER-encoding:\tChunked \r\n\r\n2\r\n\n\n\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: r\r\n\r\n{GET}"
            ),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\n\n : x\n".to_owned(),
        ] {
            for piece in [1, 2, 3, 7, 1_000] {
                assert_eq!(validate(&sent, piece), (None, sent.clone().into_bytes()), "{sent:?}");
            }
        }
    }

    #[test]
    fn ambiguous_request_heads_are_refused() {
        let post = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n{GET}");
        for (sent, expected) in [
            ("GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned(), HeadFault::BareLf),
            ("\nGET / HTTP/1.1\r\n\r\n".to_owned(), HeadFault::BareLf),
            (post("X: a\nY: b\r\n"), HeadFault::BareLf),
            (post("X: a\n"), HeadFault::BareLf),
            (post("X: a\rY: b\r\n"), HeadFault::BareCr),
            (post("X: a\r\n b\r\n"), HeadFault::Folded),
            (post("X: a\r\n\tb\r\n"), HeadFault::Folded),
            (post("X : a\r\n"), HeadFault::Name),
            (post("X\t: a\r\n"), HeadFault::Name),
            (post(": a\r\n"), HeadFault::Name),
            (post("X\r\n"), HeadFault::Name),
            (post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), HeadFault::Ambiguous),
            (post("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), HeadFault::Ambiguous),
            (post("Content-Length: 1\r\nContent-Length: 1\r\n"), HeadFault::Ambiguous),
            (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), HeadFault::Ambiguous),
            (post("Content-Length: 1, 1\r\n"), HeadFault::Length),
            (post("Content-Length: +1\r\n"), HeadFault::Length),
            (post("Content-Length: \r\n"), HeadFault::Length),
            (post("Content-Length: 99999999999999999999\r\n"), HeadFault::Length),
            (post("Transfer-Encoding: gzip, chunked\r\n"), HeadFault::Encoding),
            (post("Transfer-Encoding: identity\r\n"), HeadFault::Encoding),
            (post("Transfer-Encoding: chunked\r\n\r\n-1\r\n"), HeadFault::ChunkSize),
            (post("Transfer-Encoding: chunked\r\n\r\n1\n"), HeadFault::BareLf),
            (post("Transfer-Encoding: chunked\r\n\r\n0\r\n\n"), HeadFault::BareLf),
            (post("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"), HeadFault::ChunkSize),
            (format!("GET /{} HTTP/1.1\r\n", "x".repeat(1_000)), HeadFault::TooLong),
            (format!("{GET}GET / HTTP/1.1\n"), HeadFault::BareLf),
        ] {
            for piece in [1, 2, 3, 7, 5_000] {
                let (fault, bytes) = validate(&sent, piece);
                assert_eq!(fault, Some(expected), "{sent:?}");
                assert_eq!(bytes.last(), Some(&0), "{sent:?}");
            }
        }
    }

    #[test]
    fn after_a_fault_only_the_end_of_the_head_is_read() {
        let mut heads = HeadValidator::new(64);
        assert_eq!(heads.replacement(9), None);
        heads.validate(&mut b"GET / HTTP/1.1\n".to_owned()).expect_err("a fault");
        assert_eq!(
            [3, 9, 9].map(|room| heads.replacement(room)),
            [Some(&INVALID_HEAD[..3]), Some(&INVALID_HEAD[3..]), Some(&b""[..])]
        );
    }

    proptest! {
        #[test]
        fn heads_are_validated_alike_for_any_split_into_reads(sent in "[a: \t\r\n0-9;x]{0,80}", piece in 1_usize..20) {
            let sent = format!("POST / HTTP/1.1\r\n{sent}\r\n\r\n{GET}");
            prop_assert_eq!(validate(&sent, piece).0, validate(&sent, 10_000).0);
        }
    }
}
