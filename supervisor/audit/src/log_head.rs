//! The head of the audit log: where its index and its open segments end. A witness that keeps heads elsewhere can tell later
//! whether the log was truncated, rolled back or begun again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use nix::fcntl::FlockArg;
use serde::{Deserialize, Serialize};

use super::hash_chain::{hash, timestamp};
use super::log_key::{self, ExpectedKey};
use super::moment::Moment;
use super::reader::LINE_BYTES_MAX;
use super::segment::SegmentName;
use super::segment_index::{self, INDEX, read_end, read_from};
use super::signing::{KeyError, PublicKey};
use data_encoding::HEXLOWER;

/// Maximum size of a head that is read, in bytes. A head has some 170 bytes, and as many for each open segment.
/// Bound: the audit log.
const HEAD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The head of an audit log at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// RFC 3339, UTC.
    pub time: String,
    /// Number of lines of the index since the log began, with those that have expired.
    pub lines: u64,
    /// SHA-256 of the last line of the index; zeros if it has none.
    pub hash: String,
    /// The segments that the index does not list as closed or expired: those of running and of killed processes.
    pub segments: Vec<HeadSegment>,
    /// The key of the next line of the index, which signs the head.
    pub key: String,
    pub signature: String,
}

/// The end of an open segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadSegment {
    pub segment: String,
    /// Sequence number of its last record.
    pub seq: u64,
    /// SHA-256 of the line of that record.
    pub hash: String,
}

/// Why there is no head of the log.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    #[error("{path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(
        "{0} is not the output of `lockhouse audit head --json`, or was changed: its signature is not valid"
    )]
    Invalid(PathBuf),
}

#[derive(Deserialize)]
struct Listed {
    event: String,
    #[serde(default)]
    segment: String,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

impl LogHead {
    /// Returns the present head of the log in `directory`, signed by its key, which is in the directory `keys`.
    ///
    /// # Errors
    /// [`HeadError`] if the log or its key cannot be read, or nothing was recorded yet.
    pub fn read(directory: &Path, keys: &Path) -> Result<Self, HeadError> {
        let path = directory.join(INDEX);
        let to_error = |source| HeadError::Read { path: path.clone(), source };
        let file = files::open_to_read(&path).map_err(to_error)?;
        // No segment begins, ends or expires meanwhile.
        let mut file = segment_index::lock(file, FlockArg::LockSharedNonblock).map_err(to_error)?;
        let end = read_end(&mut file).map_err(to_error)?;
        let key = log_key::read(keys, &end.key)?;
        let listed = read_from(&mut file, 0).map_err(to_error)?;
        let mut segments = Vec::new();
        for name in open_segments(&listed) {
            let path = directory.join(name.as_str());
            match read_segment_end(&path, &name) {
                Ok(segment) => segments.extend(segment),
                // `verify` reports that the file is missing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(HeadError::Read { path, source }),
            }
        }
        let mut head = Self {
            time: timestamp(Moment::now().wall),
            lines: end.chain.seq,
            hash: HEXLOWER.encode(&end.chain.prev),
            segments,
            key: key.public_key().to_hex(),
            signature: String::new(),
        };
        head.signature = key.sign(head.signed_text().as_bytes());
        Ok(head)
    }

    /// Reads a head that a witness kept in a file, as JSON.
    ///
    /// # Errors
    /// [`HeadError`] if the file cannot be read, or the key in it did not sign it.
    pub fn from_file(path: &Path) -> Result<Self, HeadError> {
        let read = files::read_following_links(path, HEAD_BYTES_MAX)
            .and_then(|text| text.ok_or(io::ErrorKind::NotFound.into()));
        let text = read.map_err(|source| HeadError::Read { path: path.to_owned(), source })?;
        let invalid = || HeadError::Invalid(path.to_owned());
        let head: Self = serde_json::from_str(&text).map_err(|_| invalid())?;
        let key = PublicKey::from_hex(&head.key).ok_or_else(invalid)?;
        if !key.verifies(head.signed_text().as_bytes(), &head.signature) {
            return Err(invalid());
        }
        Ok(head)
    }

    fn signed_text(&self) -> String {
        let Self { time, lines, hash, segments, key, signature: _ } = self;
        let segment = |HeadSegment { segment, seq, hash }: &HeadSegment| format!("{segment} {seq} {hash}\n");
        let segments: String = segments.iter().map(segment).collect();
        format!("head\n{time}\n{lines}\n{hash}\n{key}\n{segments}")
    }
}

/// Returns the public key of the next line of the log in `log`, whose key is in `directory`: what `lockhouse audit key` prints.
/// `None` if there is no key yet.
///
/// # Errors
/// [`KeyError`] if the index or the key cannot be read.
pub fn present_key(log: &Path, directory: &Path) -> Result<Option<PublicKey>, KeyError> {
    let index = log.join(INDEX);
    let read = || -> io::Result<ExpectedKey> {
        let file = match files::open_to_read(&index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ExpectedKey::Any),
            file => file?,
        };
        Ok(read_end(&mut *segment_index::lock(file, FlockArg::LockSharedNonblock)?)?.key)
    };
    match read().map_err(|source| KeyError::File { path: index.clone(), source })? {
        ExpectedKey::Next(key) => Ok(Some(key)),
        ExpectedKey::Any | ExpectedKey::Existing => match log_key::read(directory, &ExpectedKey::Existing) {
            Ok(key) => Ok(Some(key.public_key())),
            Err(KeyError::Lost { .. }) => Ok(None),
            Err(error) => Err(error),
        },
    }
}

/// Returns the names of the segments that the index lists as opened, and neither as closed nor as expired.
fn open_segments(index: &[u8]) -> BTreeSet<SegmentName> {
    let mut open = BTreeSet::new();
    for line in index.split(|byte| *byte == b'\n') {
        let Ok(Listed { event, segment }) = serde_json::from_slice(line) else { continue };
        let Some(name) = SegmentName::parse(&segment) else { continue };
        match event.as_str() {
            "opened" => open.insert(name),
            "closed" | "expired" => open.remove(&name),
            _ => false,
        };
    }
    open
}

/// Returns the last complete record of a segment.
fn read_segment_end(path: &Path, name: &SegmentName) -> io::Result<Option<HeadSegment>> {
    let mut file: File = files::open_to_read(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LINE_BYTES_MAX)))?;
    let mut tail = Vec::new();
    file.take(LINE_BYTES_MAX).read_to_end(&mut tail)?;
    // What follows the last line feed is a record that is being written, or was never completed.
    let complete = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end);
    let last = tail[..complete].split(|byte| *byte == b'\n').rev().find_map(|line| {
        let Numbered { seq } = serde_json::from_slice(line).ok()?;
        Some(HeadSegment { segment: name.to_string(), seq, hash: HEXLOWER.encode(&hash(line)) })
    });
    Ok(last)
}
