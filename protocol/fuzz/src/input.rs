//! Turns the bytes of a fuzzing input into numbers that select what a fuzz target does. When the bytes are used up,
//! every number is 0.

pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn word(&mut self) -> u32 {
        let bytes = self.bytes(4);
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
    }

    /// Takes the next `count` bytes of the input, or fewer if the input ends before.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes one byte that contains a length, and then as many bytes as that length says. Returns these bytes
    /// without the length.
    pub(crate) fn counted(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.bytes(count.into())
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
