//! The content of a file of the host that a program writes. The supervisor receives it as a whole before anything is
//! decided about it, so that the decision, the approver and the audit log cover exactly what is written.
//!
//! Meanwhile the content is in a file without a name, which no other process can open. It vanishes with this value.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Maximum size of a piece of a file's content, in bytes.
/// Bound: files of the host.
pub(crate) const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of bytes of the beginning of a content that its description has. A content that exceeds this number by
/// at most [`END_BYTES_MAX`] bytes is described as a whole.
/// Bound: files of the host.
const BEGINNING_BYTES_MAX: usize = 2_000;
/// Maximum number of bytes of the end of a content that its description has.
/// Bound: files of the host.
const END_BYTES_MAX: usize = 1_000;

/// A content that is being received.
#[derive(Debug)]
pub struct StagedFile {
    path: String,
    file: File,
    bytes: u64,
    hash: Sha256,
}

/// A content that has arrived as a whole.
#[derive(Debug)]
pub struct StagedContent {
    /// The path at which the program writes it, as the program gave it.
    pub path: String,
    file: File,
    bytes: u64,
    /// The description of the content, as arguments of the call that writes it.
    description: Map<String, Value>,
    /// Number of bytes between the beginning and the end, which the description covers only by its hash.
    pub undescribed_bytes: u64,
}

impl StagedFile {
    /// `file` is an empty file that nothing else can open, for reading and writing.
    pub fn new(path: String, file: File) -> Self {
        Self { path, file, bytes: 0, hash: Sha256::new() }
    }

    /// Adds bytes to the content. Blocks.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)?;
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Ends the content, and describes it. Blocks.
    pub fn complete(self) -> io::Result<StagedContent> {
        let Self { path, file, bytes, hash } = self;
        let is_whole = bytes <= (BEGINNING_BYTES_MAX + END_BYTES_MAX) as u64;
        let (first, last) = match is_whole {
            true => (usize::try_from(bytes).unwrap_or(0), 0),
            false => (BEGINNING_BYTES_MAX, END_BYTES_MAX),
        };
        let (mut beginning, mut end) = (vec![0; first], vec![0; last]);
        file.read_exact_at(&mut beginning, 0)?;
        file.read_exact_at(&mut end, bytes - last as u64)?;
        let (beginning, end) = if is_whole {
            (&*beginning, &*end)
        } else {
            (whole_chars_first(&beginning), whole_chars_last(&end))
        };
        let mut description = Map::new();
        describe(&mut description, if is_whole { "content" } else { "begins" }, beginning);
        if !is_whole {
            describe(&mut description, "ends", end);
        }
        description.insert("bytes".into(), bytes.into());
        description.insert("sha256".into(), HEXLOWER.encode(&hash.finalize()).into());
        let undescribed_bytes = bytes - (beginning.len() + end.len()) as u64;
        Ok(StagedContent { path, file, bytes, description, undescribed_bytes })
    }
}

impl StagedContent {
    /// Returns the description of the content: `bytes` and `sha256`, and `content` or, of a long one, `begins` and
    /// `ends`. A part that is no text has the suffix `_bytes`, and is written like a byte string of Rust or Python.
    pub fn description(&self) -> Map<String, Value> {
        self.description.clone()
    }

    /// Number of bytes of the whole content.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the piece of the content that begins at `offset`; it is empty at the end. Blocks.
    pub fn piece(&self, offset: u64) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(PIECE_BYTES_MAX)];
        self.file.read_exact_at(&mut piece, offset)?;
        Ok(piece)
    }
}

fn describe(description: &mut Map<String, Value>, name: &str, part: &[u8]) {
    match std::str::from_utf8(part) {
        Ok(text) => description.insert(name.to_owned(), text.into()),
        Err(_) => description.insert(format!("{name}_bytes"), part.escape_ascii().to_string().into()),
    };
}

/// Returns the part without a character of UTF-8 that is cut at its end.
fn whole_chars_first(part: &[u8]) -> &[u8] {
    match std::str::from_utf8(part) {
        Err(error) if error.error_len().is_none() => &part[..error.valid_up_to()],
        _ => part,
    }
}

/// Returns the part without a character of UTF-8 that is cut at its beginning.
fn whole_chars_last(part: &[u8]) -> &[u8] {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let cut = part.iter().take(3).take_while(is_continuation).count();
    if std::str::from_utf8(&part[cut..]).is_ok() { &part[cut..] } else { part }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the description of a content that arrives in pieces of 7 bytes, the bytes that it leaves out, and the
    /// content.
    fn staged(content: &[u8]) -> (Value, u64, Vec<u8>) {
        let mut staged = StagedFile::new("/a".into(), tempfile::tempfile().expect("a file"));
        content.chunks(7).for_each(|piece| staged.write(piece).expect("a write"));
        let complete = staged.complete().expect("a content");
        let mut read: Vec<u8> = Vec::new();
        loop {
            let piece = complete.piece(read.len() as u64).expect("a piece");
            if piece.is_empty() {
                break;
            }
            read.extend(piece);
        }
        (complete.description().into(), complete.undescribed_bytes, read)
    }

    fn sha256(content: &[u8]) -> String {
        HEXLOWER.encode(&Sha256::digest(content))
    }

    #[test]
    fn a_short_content_is_described_as_a_whole() {
        for (content, name, text) in [
            (&b""[..], "content", ""),
            ("a\n\u{17e}\u{202e}".as_bytes(), "content", "a\n\u{17e}\u{202e}"),
            (b"\x89PNG\n\\", "content_bytes", r"\x89PNG\n\\"),
        ] {
            let expected = json!({name: text, "bytes": content.len(), "sha256": sha256(content)});
            assert_eq!(staged(content), (expected, 0, content.to_vec()));
        }
        let most = vec![b'x'; BEGINNING_BYTES_MAX + END_BYTES_MAX];
        let (description, undescribed, _) = staged(&most);
        assert_eq!((description["content"].as_str().map(str::len), undescribed), (Some(most.len()), 0));
    }

    #[test]
    fn of_a_long_content_the_beginning_the_end_the_length_and_the_hash_are_described() {
        let content = format!("begins{}ends", "\u{17e}".repeat(1_000_000));
        let (description, undescribed, read) = staged(content.as_bytes());
        let (begins, ends) = ("\u{17e}".repeat(997), "\u{17e}".repeat(498));
        let expected = json!({
            "begins": format!("begins{begins}"), "ends": format!("{ends}ends"),
            "bytes": content.len(), "sha256": sha256(content.as_bytes()),
        });
        assert_eq!((description, undescribed), (expected, content.len() as u64 - 2_000 - 1_000));
        assert_eq!(read, content.as_bytes());
    }

    #[test]
    fn cut_characters_are_left_out_and_bytes_that_are_no_text_are_escaped() {
        let content = format!("x{}y", "\u{17e}".repeat(2_000));
        let (description, undescribed, _) = staged(content.as_bytes());
        let (begins, ends) = (description["begins"].as_str(), description["ends"].as_str());
        assert_eq!(begins.map(str::len), Some(1_999), "{description}");
        assert_eq!(ends.map(str::len), Some(999), "{description}");
        assert_eq!(undescribed, 4_002 - 1_999 - 999);
        let (description, ..) = staged(&[&b"\xff"[..], &vec![b'a'; 5_000], b"\x80"].concat());
        let escaped = (description["begins_bytes"].as_str(), description["ends_bytes"].as_str());
        assert!(escaped.0.is_some_and(|text| text.starts_with(r"\xffaa")), "{description}");
        assert!(escaped.1.is_some_and(|text| text.ends_with(r"aa\x80")), "{description}");
    }
}
