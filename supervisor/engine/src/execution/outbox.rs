//! Encoded messages that wait to be written to a worker.

use std::collections::VecDeque;

use lockhouse_protocol::{FrameError, ToWorker, frame};

/// Maximum total size, in bytes, of messages that are joined so that one write sends them. A larger reply is not
/// joined, so that it is not copied.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// Encoded messages that are not yet written to a worker, in their order. Their size is bounded, since a worker has a
/// limited number of requests in flight.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
    /// How many bytes of the first piece were already written to the worker.
    written: usize,
    /// How many bytes of all pieces are not yet written to the worker.
    bytes: usize,
}

impl Outbox {
    /// Encodes a message and adds it to the outbox.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] if the encoded message exceeds `limit` bytes.
    pub(super) fn push(&mut self, message: ToWorker, limit: u32) -> Result<(), FrameError> {
        match message {
            ToWorker::Reply { call, reply: Ok(json) } if json.len() > JOINED_BYTES_MAX => {
                let empty = ToWorker::Reply { call, reply: Ok(Vec::new()) };
                let beginning = frame::encode_without_tail(&empty, json.len(), limit)?;
                self.push_piece(beginning);
                self.push_piece(json);
            }
            message => self.push_piece(frame::encode(&message, limit)?),
        }
        Ok(())
    }

    fn push_piece(&mut self, piece: Vec<u8>) {
        self.bytes += piece.len();
        match self.pieces.back_mut() {
            Some(last) if last.len() + piece.len() <= JOINED_BYTES_MAX => last.extend_from_slice(&piece),
            _ => self.pieces.push_back(piece),
        }
    }

    /// Returns bytes to write next; empty if there are none.
    pub(super) fn next_bytes(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece[self.written..])
    }

    /// Removes the first `count` bytes of [`Self::next_bytes`], after they were written to the worker.
    pub(super) fn advance(&mut self, count: usize) {
        self.written += count;
        self.bytes -= count;
        if self.next_bytes().is_empty() {
            self.pieces.pop_front();
            self.written = 0;
        }
    }

    /// Returns the number of bytes that are not yet written to the worker.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::{CallId, Reply};
    use proptest::prelude::*;

    use super::*;

    fn message(call: u32, bytes: usize) -> ToWorker {
        let reply: Reply = Ok((0..bytes).map(|at| (at % 251) as u8).collect());
        ToWorker::Reply { call: CallId(call), reply }
    }

    proptest! {
        #[test]
        fn what_is_written_are_the_frames_in_their_order(
            sizes in prop::collection::vec(prop_oneof![0_usize..300, 60_000_usize..200_000], 0..8),
            writes in prop::collection::vec(1_usize..150_000, 1..20),
        ) {
            let (mut outbox, mut expected, mut written) = (Outbox::default(), Vec::new(), Vec::new());
            let mut writes = writes.into_iter().cycle();
            for (call, size) in (0..).zip(sizes) {
                expected.extend(frame::encode(&message(call, size), 1 << 20).expect("a frame"));
                outbox.push(message(call, size), 1 << 20).expect("a frame");
                let count = writes.next().unwrap_or(1).min(outbox.next_bytes().len());
                written.extend_from_slice(&outbox.next_bytes()[..count]);
                outbox.advance(count);
                prop_assert_eq!(outbox.len(), expected.len() - written.len());
            }
            while !outbox.next_bytes().is_empty() {
                let count = writes.next().unwrap_or(1).min(outbox.next_bytes().len());
                written.extend_from_slice(&outbox.next_bytes()[..count]);
                outbox.advance(count);
            }
            prop_assert!(written == expected && outbox.len() == 0);
        }
    }

    #[test]
    fn a_value_up_to_the_limit_fits_and_a_larger_one_does_not() {
        let limit = 200_000;
        let overhead = frame::encode(&message(1, 0), limit).expect("a frame").len() - 4;
        assert!(Outbox::default().push(message(1, limit as usize - overhead), limit).is_ok());
        assert!(Outbox::default().push(message(1, limit as usize - overhead + 1), limit).is_err());
    }
}
