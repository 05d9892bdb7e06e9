//! One line of a server's output, collected piece by piece and never beyond its limit.

/// What is kept of a line over the limit, at each end: enough to find whose answer it is.
const KEEP_BYTES: usize = 256;

/// The line that is being read.
pub(super) struct Line {
    bytes_max: usize,
    bytes: Vec<u8>,
    tail: Vec<u8>,
    /// Of a line over the limit, bytes that were not kept.
    skipped: usize,
    over_limit: bool,
}

/// A line that has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Within(Vec<u8>),
    /// Over the limit: its two ends.
    TooLong(Vec<u8>, Vec<u8>),
}

impl Line {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: Vec::new(), tail: Vec::new(), skipped: 0, over_limit: false }
    }

    /// Adds a piece, keeping only the ends of the line once it is too long.
    pub(super) fn add(&mut self, piece: &[u8]) {
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

    /// Bytes that were read of it so far and kept.
    pub(super) fn kept(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that were read of it so far beyond its limit.
    pub(super) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Takes it, and begins the next one.
    pub(super) fn take(&mut self) -> Whole {
        let Self { bytes, tail, over_limit, .. } = std::mem::replace(self, Self::new(self.bytes_max));
        match over_limit {
            true => Whole::TooLong(bytes, tail),
            false => Whole::Within(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_keeps_its_ends_however_it_is_cut() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
        let ends = Whole::TooLong(text[..KEEP_BYTES].to_vec(), text[text.len() - KEEP_BYTES..].to_vec());
        for piece in [1, 255, 256, 257, 4_096, 100_000] {
            let mut line = Line::new(1_000);
            text.chunks(piece).for_each(|piece| line.add(piece));
            assert!(line.kept() <= KEEP_BYTES && line.skipped() >= 99_000);
            assert_eq!(line.take(), ends, "in pieces of {piece}");
            line.add(b"next");
            assert_eq!((line.skipped(), line.take()), (0, Whole::Within(b"next".to_vec())));
        }
    }
}
