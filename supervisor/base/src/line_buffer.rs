//! Assembles the lines that a peer sends from chunks, with a size limit for each line.

/// Maximum number of bytes that are kept of the beginning, and also of the end, of a line over the size limit. They
/// suffice to find the id of most messages.
const KEEP_BYTES: usize = 256;

/// The line that is being received.
#[derive(Debug)]
pub struct LineBuffer {
    bytes_max: usize,
    bytes: Vec<u8>,
    tail: Vec<u8>,
    /// For a line over the size limit: number of bytes in the chunk that exceeded the limit and in all later chunks.
    /// Otherwise 0.
    skipped: usize,
    over_limit: bool,
}

/// A complete line.
#[derive(Debug, PartialEq, Eq)]
pub enum CompleteLine {
    Within(Vec<u8>),
    /// A line over the size limit. Contains only its first and its last bytes, at most `KEEP_BYTES` each.
    TooLong(Vec<u8>, Vec<u8>),
}

impl LineBuffer {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: Vec::new(), tail: Vec::new(), skipped: 0, over_limit: false }
    }

    /// Appends a chunk of the line. Once the line exceeds the size limit, only its beginning and its end are kept.
    pub fn add(&mut self, piece: &[u8]) {
        if !self.over_limit && self.bytes.len() + piece.len() <= self.bytes_max {
            return self.bytes.extend_from_slice(piece);
        }
        if !self.over_limit {
            self.over_limit = true;
            let room = KEEP_BYTES.saturating_sub(self.bytes.len()).min(piece.len());
            self.bytes.extend_from_slice(&piece[..room]);
            self.bytes.truncate(KEEP_BYTES);
            self.bytes.shrink_to_fit();
        }
        self.skipped += piece.len();
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(KEEP_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(KEEP_BYTES));
    }

    /// Returns how many bytes are buffered from the beginning of the current line: all of them, or at most `KEEP_BYTES`
    /// if the line is over the size limit.
    pub fn kept(&self) -> usize {
        self.bytes.len()
    }

    /// Returns 0 as long as the current line is within the size limit. After that, returns the number of bytes in the
    /// chunk that exceeded the limit and in all later chunks of the line.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Ends the current line and returns it. The next chunk begins a new line.
    pub fn take(&mut self) -> CompleteLine {
        let Self { bytes, tail, over_limit, .. } = std::mem::replace(self, Self::new(self.bytes_max));
        match over_limit {
            true => CompleteLine::TooLong(bytes, tail),
            false => CompleteLine::Within(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_keeps_its_ends_however_it_is_cut() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
        let ends =
            CompleteLine::TooLong(text[..KEEP_BYTES].to_vec(), text[text.len() - KEEP_BYTES..].to_vec());
        for piece in [1, 255, 256, 257, 4_096, 100_000] {
            let mut line = LineBuffer::new(1_000);
            text.chunks(piece).for_each(|piece| line.add(piece));
            assert!(line.kept() <= KEEP_BYTES && line.skipped() >= 99_000);
            assert_eq!(line.take(), ends, "in pieces of {piece}");
            line.add(b"next");
            assert_eq!((line.skipped(), line.take()), (0, CompleteLine::Within(b"next".to_vec())));
        }
    }
}
