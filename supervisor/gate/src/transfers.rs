//! The files that a program of one execution reads or writes in pieces. A file is opened once, after the gate has
//! permitted it; its pieces are neither decided about nor recorded again. The supervisor holds one piece at a time.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use lockhouse_protocol::{Failure, FailureCode};
use parking_lot::Mutex;

use super::failures::invalid_arguments;
use lockhouse_host_files::{StagedContent, StagedFile};
use lockhouse_stores::result_files::FileWriter;

/// Maximum number of files that one execution has open for reading and writing at one time.
const OPEN_MAX: usize = 16;
/// Maximum size of a piece in bytes; a smaller limit of values holds too.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// The open files of one execution, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Transfers(Mutex<OpenFiles>);

#[derive(Debug, Default)]
struct OpenFiles {
    last: u32,
    files: HashMap<u32, Transfer>,
}

/// A file that is read or written in pieces.
#[derive(Debug)]
pub(super) enum Transfer {
    Reading(Reading),
    Writing {
        to: Target,
        /// The bytes that are still to come.
        left: u64,
    },
    /// The whole content of a file of the host, which is not written yet.
    Complete(StagedContent),
}

/// A file that is read in pieces: the size that it had when it was opened.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) content: ReadContent,
    pub(super) bytes: u64,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) enum ReadContent {
    File(File),
    /// A stored result, as JSON text.
    Text(std::sync::Arc<str>),
}

/// Where a file is written to.
#[derive(Debug)]
pub(super) enum Target {
    Host(StagedFile),
    Answer(FileWriter),
}

/// A transfer of which the last piece has been written.
pub(super) enum Written {
    Partly(Transfer),
    Whole(Target),
}

impl Target {
    /// Returns the name of a file of the answer; `None` for a file of the host.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Host(_) => None,
            Self::Answer(file) => Some(file.name().to_owned()),
        }
    }
}

impl Transfers {
    /// Adds an open file, and returns its number.
    ///
    /// # Errors
    /// If the execution has too many files open.
    pub(super) fn add(&self, transfer: Transfer) -> Result<u32, Failure> {
        let mut open = self.0.lock();
        if open.files.len() >= OPEN_MAX {
            let message = format!("a program can transfer {OPEN_MAX} files at one time");
            return Err(Failure::new(FailureCode::RateLimited, message));
        }
        open.last += 1;
        let number = open.last;
        open.files.insert(number, transfer);
        Ok(number)
    }

    /// Takes out an open file for the time in which a piece is transferred, or for good.
    ///
    /// # Errors
    /// If no file has this number, or a piece of it is being transferred.
    pub(super) fn take(&self, number: u32) -> Result<Transfer, Failure> {
        let taken = self.0.lock().files.remove(&number);
        taken.ok_or_else(|| Failure::new(FailureCode::NotFound, "no file with this number is open".into()))
    }

    /// Takes out the whole content of a file of the host. `None` if no content with this number is complete.
    pub(super) fn take_complete(&self, number: u32) -> Option<StagedContent> {
        let mut open = self.0.lock();
        match open.files.remove(&number)? {
            Transfer::Complete(content) => Some(content),
            other => {
                open.files.insert(number, other);
                None
            }
        }
    }

    /// Closes all files.
    pub(super) fn close_all(&self) {
        self.0.lock().files.clear();
    }

    /// Puts an open file back that [`Self::take`] has taken out.
    pub(super) fn put_back(&self, number: u32, transfer: Transfer) {
        self.0.lock().files.insert(number, transfer);
    }
}

/// Returns the maximum size of a piece, if a value may have at most `value_bytes` bytes.
pub(super) fn piece_bytes(value_bytes: usize) -> usize {
    value_bytes.min(PIECE_BYTES_MAX)
}

impl Reading {
    /// Reads the next piece of at most `most` bytes; it is empty at the end. Blocks.
    ///
    /// # Errors
    /// If the file has become shorter since it was opened, or cannot be read.
    pub(super) fn next_piece(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let left = usize::try_from(self.bytes - self.offset).unwrap_or(usize::MAX);
        let length = most.min(left);
        let piece = match &self.content {
            ReadContent::Text(text) => {
                let start = self.offset as usize;
                text.as_bytes()[start..start + length].to_vec()
            }
            ReadContent::File(file) => {
                let mut piece = vec![0; length];
                file.read_exact_at(&mut piece, self.offset).map_err(|error| {
                    let reason = match error.kind() {
                        std::io::ErrorKind::UnexpectedEof => "it became shorter".to_owned(),
                        _ => error.to_string(),
                    };
                    Failure::new(FailureCode::ToolFailed, format!("the file cannot be read on: {reason}"))
                })?;
                piece
            }
        };
        self.offset += length as u64;
        Ok(piece)
    }
}

/// Writes the next piece of a file of which `left` bytes are still to come. Blocks.
///
/// # Errors
/// If the piece is longer than what is to come, or is empty before the end, or cannot be written. The file is then
/// discarded.
pub(super) fn write_piece(to: Target, left: u64, piece: &[u8]) -> Result<Written, Failure> {
    let left = left.checked_sub(piece.len() as u64).filter(|left| *left == 0 || !piece.is_empty());
    let left = left.ok_or_else(|| invalid_arguments("the pieces do not have the size of the file".into()))?;
    let to = match to {
        Target::Host(mut file) => {
            file.write(piece).map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))?;
            Target::Host(file)
        }
        Target::Answer(mut file) => {
            file.write(piece).map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))?;
            Target::Answer(file)
        }
    };
    Ok(if left == 0 { Written::Whole(to) } else { Written::Partly(Transfer::Writing { to, left }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Transfer {
        let content = ReadContent::Text(text.into());
        Transfer::Reading(Reading { content, bytes: text.len() as u64, offset: 0 })
    }

    #[test]
    fn a_file_is_read_in_pieces_to_its_end() {
        let Transfer::Reading(mut reading) = text("abcde") else { panic!("a reading") };
        let pieces: Vec<_> = (0..4).map(|_| reading.next_piece(2).expect("a piece")).collect();
        assert_eq!(pieces, [&b"ab"[..], b"cd", b"e", b""]);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_an_error() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(10).expect("a longer file");
        let content = ReadContent::File(file.try_clone().expect("a file"));
        let mut reading = Reading { content, bytes: 10, offset: 0 };
        assert_eq!(reading.next_piece(4), Ok(vec![0; 4]));
        file.set_len(5).expect("a shorter file");
        assert!(reading.next_piece(4).is_err_and(|failure| failure.message.contains("shorter")));
    }

    #[test]
    fn the_number_of_open_files_is_bounded_and_a_number_is_used_once() {
        let transfers = Transfers::default();
        let numbers: Vec<_> = (0..OPEN_MAX).map(|_| transfers.add(text("a")).expect("a number")).collect();
        assert!(transfers.add(text("a")).is_err());
        assert!(transfers.take(numbers[0]).is_ok() && transfers.take(numbers[0]).is_err());
        assert_eq!(transfers.add(text("a")), Ok(OPEN_MAX as u32 + 1));
    }
}
