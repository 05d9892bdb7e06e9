//! The lines of one file, one after the other, with a look at those that follow.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};

use data_encoding::HEXLOWER;
use serde::Deserialize;

use super::super::line::{Hash, SIGNATURE, hash};
use super::super::read::{LINE_BYTES_MAX, skip_line};
use super::super::sign::PublicKey;

/// A line as it stands in the file.
#[derive(Debug)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// Bytes of the file before it.
    pub(super) start: u64,
    pub(super) hash: Hash,
    /// `None` for one that is no record.
    pub(super) record: Option<Signed>,
    /// Whether it has an end.
    pub(super) is_whole: bool,
}

/// A record, and whether it is signed.
#[derive(Debug)]
pub(super) struct Signed {
    pub(super) members: Members,
    /// Whether the key that is trusted signed it; `None` without a signature.
    pub(super) signature: Option<bool>,
}

/// What a record says of the chain.
#[derive(Debug, Deserialize)]
pub(super) struct Members {
    pub(super) seq: u64,
    #[serde(deserialize_with = "from_hex")]
    pub(super) prev: Hash,
    pub(super) event: String,
    #[serde(default)]
    pub(super) version: u32,
    #[serde(default)]
    pub(super) segment: String,
    #[serde(default)]
    pub(super) key: String,
    pub(super) previous: Option<String>,
    /// Of a gap.
    #[serde(default)]
    pub(super) records: u64,
    #[serde(default)]
    pub(super) torn: u64,
    #[serde(default)]
    pub(super) reason: String,
    /// Of an execution, or of a skill.
    pub(super) language: Option<String>,
    pub(super) code: Option<String>,
    pub(super) code_kept: Option<String>,
    /// Of the index.
    #[serde(default)]
    pub(super) first: String,
    #[serde(default)]
    pub(super) last: String,
    #[serde(default)]
    pub(super) last_seq: u64,
}

fn from_hex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    use serde::de::Error as _;
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    unhex(&text).ok_or_else(|| D::Error::custom("no hash"))
}

/// A hash from 64 hexadecimal digits in lower case.
pub(super) fn unhex(text: &str) -> Option<Hash> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// The lines of a reader.
pub(super) struct Lines<'a, R> {
    reader: R,
    key: &'a PublicKey,
    next_number: u64,
    next_start: u64,
    ahead: VecDeque<Line>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(super) fn new(reader: R, key: &'a PublicKey) -> Self {
        Self { reader, key, next_number: 1, next_start: 0, ahead: VecDeque::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.read(),
        }
    }

    /// The line after `skipped` others.
    pub(super) fn peek(&mut self, skipped: usize) -> io::Result<Option<&Line>> {
        while self.ahead.len() <= skipped {
            match self.read()? {
                Some(line) => self.ahead.push_back(line),
                None => return Ok(None),
            }
        }
        Ok(self.ahead.get(skipped))
    }

    fn read(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        let mut bytes = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        let mut is_whole = text.pop_if(|last| *last == b'\n').is_some();
        let is_too_long = bytes == LINE_BYTES_MAX && !is_whole;
        if is_too_long {
            bytes += skip_line(&mut self.reader)?;
            is_whole = true;
        }
        let record = if is_too_long { None } else { self.signed(&text) };
        let line =
            Line { number: self.next_number, start: self.next_start, hash: hash(&text), record, is_whole };
        self.next_number += 1;
        self.next_start += bytes;
        Ok(Some(line))
    }

    fn signed(&self, text: &[u8]) -> Option<Signed> {
        let members: Members = serde_json::from_slice(text).ok()?;
        let at = text.windows(SIGNATURE.len()).rposition(|window| window == SIGNATURE.as_bytes());
        let signature = at.map(|at| {
            let signature = text[at + SIGNATURE.len()..].strip_suffix(b"\"}");
            let signature = signature.and_then(|signature| std::str::from_utf8(signature).ok());
            signature.is_some_and(|signature| self.key.verifies(&text[..at], signature))
        });
        Some(Signed { members, signature })
    }
}
