//! Verification of the audit log: reads the lines of a segment or of the index, with lookahead.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};

use serde::Deserialize;

use super::super::hash_chain::{Hash, SIGNATURE, hash};
use super::super::reader::{LINE_BYTES_MAX, skip_line};
use super::super::signing::PublicKey;
use super::chain_members::ChainMembers;
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
    /// Whether the line is a JSON object, which readers of the log show.
    pub(super) is_object: bool,
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

/// Any JSON object.
#[derive(Deserialize)]
struct AnyObject {}

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
        let is_object = record.is_some() || serde_json::from_slice::<AnyObject>(&text).is_ok();
        let (number, start, hash) = (self.next_number, self.next_start, hash(&text));
        let line = LogLine { number, start, hash, record, is_object, is_whole };
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
