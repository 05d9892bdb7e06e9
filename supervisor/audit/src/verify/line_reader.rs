//! Verification of the audit log: reads the lines of a segment or of the index, with lookahead.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};

use data_encoding::HEXLOWER;
use serde::Deserialize;

use super::super::hash_chain::{Hash, SIGNATURE, hash};
use super::super::log_rekey::rekey_text;
use super::super::reader::{LINE_BYTES_MAX, skip_line};
use super::super::signing::PublicKey;
use super::key_succession::Version1Keys;

/// A line of a segment or of the index of segments.
#[derive(Debug)]
pub(super) struct LogLine {
    /// Line number, starting at 1.
    pub(super) number: u64,
    /// Byte offset of the line in the file.
    pub(super) start: u64,
    pub(super) hash: Hash,
    /// The audit record in the line. `None` if the line is not a valid record.
    pub(super) record: Option<SignedRecord>,
    /// Whether the line was written completely: it ends with a line feed. A line that is too long to be read counts as
    /// complete.
    pub(super) is_whole: bool,
}

/// An audit record with the state of its signature.
#[derive(Debug)]
pub(super) struct SignedRecord {
    pub(super) members: ChainMembers,
    /// Whether the signature is valid for the key that the record names; for a record of version 1, which names none, for
    /// one of the keys that may have signed it. `None` if it has no signature.
    pub(super) signature: Option<bool>,
}

/// The JSON members of an audit record that verification uses.
#[derive(Debug, Deserialize)]
pub(super) struct ChainMembers {
    pub(super) seq: u64,
    #[serde(deserialize_with = "deserialize_hash")]
    pub(super) prev: Hash,
    pub(super) event: String,
    #[serde(default)]
    pub(super) version: u32,
    #[serde(default)]
    pub(super) segment: String,
    #[serde(default)]
    pub(super) key: String,
    /// The key of the next signed line.
    pub(super) next: Option<String>,
    /// The key whose signature of this line is valid.
    #[serde(skip)]
    pub(super) signer: Option<PublicKey>,
    pub(super) previous: Option<String>,
    /// Number of records that could not be written. This and the next two fields are members of a `gap` record.
    #[serde(default)]
    pub(super) records: u64,
    #[serde(default)]
    pub(super) torn: u64,
    #[serde(default)]
    pub(super) reason: String,
    /// What the clock showed before and after a jump, and the size of the jump. These are members of a `clock` record.
    #[serde(default)]
    pub(super) from: String,
    #[serde(default)]
    pub(super) to: String,
    #[serde(default)]
    pub(super) difference_s: f64,
    /// Language of the program. This and the next two fields are members of an `execution` or `skill` record.
    pub(super) language: Option<String>,
    pub(super) code: Option<String>,
    pub(super) code_kept: Option<String>,
    /// Hash of a segment's first line. This and the next two fields are members of records in the index of segments.
    #[serde(default)]
    pub(super) first: String,
    #[serde(default)]
    pub(super) last: String,
    #[serde(default)]
    pub(super) last_seq: u64,
    /// The key of an administrator, and its signature of a key that replaces a lost one. These are members of a `rekey` line.
    administrator: Option<String>,
    countersignature: Option<String>,
}

impl ChainMembers {
    /// Returns the administrator's key that countersigned this line: the new key, the lost one, and the place in the chain.
    pub(super) fn countersigned_by(&self, lost: &str, administrators: &[PublicKey]) -> Option<PublicKey> {
        let (named, signature) = (self.administrator.as_deref()?, self.countersignature.as_deref()?);
        let key = administrators.iter().find(|key| key.to_hex() == named)?;
        key.verifies(rekey_text(self.prev, lost, &self.key).as_bytes(), signature).then(|| key.clone())
    }
}

fn deserialize_hash<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    use serde::de::Error as _;
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    hash_from_hex(&text).ok_or_else(|| D::Error::custom("no hash"))
}

/// Parses a hash of 64 lower-case hexadecimal digits. Returns `None` for any other text.
pub(super) fn hash_from_hex(text: &str) -> Option<Hash> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Reads the lines of a log file, with lookahead, and verifies the signatures of their records.
pub(super) struct LineReader<R> {
    reader: R,
    version_1: Version1Keys,
    next_number: u64,
    next_start: u64,
    ahead: VecDeque<LogLine>,
}

impl<R: BufRead> LineReader<R> {
    /// Returns a reader. `version_1` are the keys that may have signed lines without a key.
    pub(super) fn new(reader: R, version_1: Version1Keys) -> Self {
        Self { reader, version_1, next_number: 1, next_start: 0, ahead: VecDeque::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<LogLine>> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.read(),
        }
    }

    /// Returns the line after the next `skipped` lines, without consuming any line. `None` if the file has fewer lines.
    pub(super) fn peek(&mut self, skipped: usize) -> io::Result<Option<&LogLine>> {
        while self.ahead.len() <= skipped {
            match self.read()? {
                Some(line) => self.ahead.push_back(line),
                None => return Ok(None),
            }
        }
        Ok(self.ahead.get(skipped))
    }

    fn read(&mut self) -> io::Result<Option<LogLine>> {
        let mut text = Vec::new();
        let mut bytes = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        let mut is_whole = text.pop_if(|last| *last == b'\n').is_some();
        let is_too_long = bytes == LINE_BYTES_MAX && !is_whole;
        if is_too_long {
            let (skipped, has_end) = skip_line(&mut self.reader)?;
            bytes += skipped;
            is_whole = has_end;
        }
        let record = if is_too_long { None } else { self.signed(&text) };
        let line =
            LogLine { number: self.next_number, start: self.next_start, hash: hash(&text), record, is_whole };
        self.next_number += 1;
        self.next_start += bytes;
        Ok(Some(line))
    }

    fn signed(&mut self, text: &[u8]) -> Option<SignedRecord> {
        let mut members: ChainMembers = serde_json::from_slice(text).ok()?;
        let Some(at) = text.windows(SIGNATURE.len()).rposition(|window| window == SIGNATURE.as_bytes())
        else {
            return Some(SignedRecord { members, signature: None });
        };
        let signature = text[at + SIGNATURE.len()..].strip_suffix(b"\"}");
        let signature =
            signature.and_then(|signature| std::str::from_utf8(signature).ok()).unwrap_or_default();
        members.signer = match PublicKey::from_hex(&members.key) {
            Some(key) => key.verifies(&text[..at], signature).then_some(key),
            None => self.version_1.signer(&text[..at], signature),
        };
        // In a segment of version 1, the first record alone has the key of all.
        if members.event == "open" && members.version == 1 {
            members.signer.iter().for_each(|key| self.version_1.add(key.clone()));
        }
        let signature = Some(members.signer.is_some());
        Some(SignedRecord { members, signature })
    }
}
