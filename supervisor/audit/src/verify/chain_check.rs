//! Verifies one hash chain of the audit log line by line, and finds changed, dropped, inserted and moved records.
//!
//! Each record has a sequence number and the hash of the line before it. Where these do not match, the surrounding
//! lines show which line was changed.

use std::io::{self, BufRead};

use super::super::hash_chain::Hash;
use super::chain_members::{ChainMembers, hash_from_hex};
use super::line_reader::{LineReader, LogLine, SignedRecord};
use super::{Finding, FindingKind};

/// Verification remembers at most this number of ranges of missing records, and at most this number of records that
/// came too early, because they may turn out to be moved. Beyond this number, a missing record is reported at once as
/// dropped, and an early one as inserted or moved.
const PENDING_RANGES_MAX: usize = 10_000;
/// Maximum number of lines that verification skips as the remains of one incomplete write.
const TORN_LINES_MAX: usize = 8;

/// How a hash chain is verified: the file name for findings, and the events that must be signed.
pub(super) struct ChainRules {
    /// Name of the verified file, for findings.
    pub(super) file: String,
    /// The events whose records must be signed. `None` if every record must be signed.
    pub(super) signed: Option<&'static [&'static str]>,
}

/// Result of verifying a hash chain.
#[derive(Debug, Default)]
pub(super) struct ChainSummary {
    pub(super) records: u64,
    /// Hash of the last line of the previous segment, as the first record of this chain states it.
    pub(super) before: Hash,
    pub(super) first: Hash,
    pub(super) last: Hash,
    pub(super) last_seq: u64,
    /// Number of records after the last signed record.
    pub(super) unsigned: u64,
}

/// A range of sequence numbers: either the records that are missing before the line `line`, or the one record in that
/// line that came too early.
struct SequenceRange {
    from: u64,
    to: u64,
    line: u64,
}

struct ChainCheck<'a, R> {
    rules: ChainRules,
    lines: LineReader<R>,
    report: &'a mut dyn FnMut(Finding),
    chain: ChainSummary,
    expected: u64,
    prev: Option<Hash>,
    /// Line number of the previous record, and the hash in its member `prev`. `None` before the second record.
    before: Option<(u64, Hash)>,
    is_reported: bool,
    missing: Vec<SequenceRange>,
    early_records: Vec<SequenceRange>,
}

/// Verifies a hash chain. Calls `report` for each finding, and `seen` for each record in its correct position, with the
/// number and the hash of its line.
pub(super) fn check_chain<R: BufRead>(
    rules: ChainRules,
    lines: LineReader<R>,
    report: &mut dyn FnMut(Finding),
    mut seen: impl FnMut(&ChainMembers, u64, Hash, &mut dyn FnMut(Finding)),
) -> io::Result<ChainSummary> {
    let mut check_chain = ChainCheck {
        rules,
        lines,
        report,
        chain: ChainSummary::default(),
        expected: 0,
        prev: None,
        before: None,
        is_reported: false,
        missing: Vec::new(),
        early_records: Vec::new(),
    };
    while let Some(line) = check_chain.lines.next()? {
        if !line.is_whole {
            check_chain.note(
                &line,
                None,
                "the last line is incomplete: its process ended during the write, or is writing it now",
            );
            break;
        }
        let (number, hash) = (line.number, line.hash);
        if let Some(members) = check_chain.take(line)? {
            seen(&members, number, hash, check_chain.report);
        }
    }
    Ok(check_chain.finish())
}

impl<R: BufRead> ChainCheck<'_, R> {
    /// Verifies a line. Returns the record in the line if it is the next record of the chain, else `None`.
    fn take(&mut self, line: LogLine) -> io::Result<Option<ChainMembers>> {
        if !self.is_next(&line) && self.skips_torn(&line)? {
            return Ok(None);
        }
        let LogLine { number, hash, record, .. } = line;
        let Some(record) = record else {
            return self.handle_invalid_line(number, hash).map(|()| None);
        };
        let (seq, prev) = (record.members.seq, record.members.prev);
        if self.chain.records == 0 && self.rules.signed.is_none() && is_index_cut(&record) {
            self.expected = seq;
            let members = self.advance(number, hash, record)?;
            self.prev = hash_from_hex(&members.last);
            return Ok(Some(members));
        }
        let has_prev = self.prev.is_none_or(|expected| expected == prev);
        if seq == self.expected {
            if !has_prev && !self.is_reported {
                self.report_hash_mismatch(number, hash, &record)?;
            } else {
                self.is_reported = false;
            }
            return self.advance(number, hash, record).map(Some);
        }
        if has_prev && self.prev.is_some() {
            let description =
                format!("changed: this was record {}, and its number is now {seq}", self.expected);
            self.fault(Some(number), Some(self.expected), description);
            self.is_reported = true;
            return self.advance(number, hash, record).map(Some);
        }
        if seq > self.expected {
            if self.next_is_expected()? {
                self.record_early(seq, number);
                return Ok(None);
            }
            self.expect_later(self.expected, seq - 1, number);
            self.expected = seq;
            self.is_reported = false;
            return self.advance(number, hash, record).map(Some);
        }
        self.check_repeated(number, hash, &record)?;
        Ok(None)
    }

    fn is_next(&self, line: &LogLine) -> bool {
        line.record.as_ref().is_some_and(|SignedRecord { members, .. }| {
            members.seq == self.expected && self.prev.is_none_or(|prev| prev == members.prev)
        })
    }

    /// Skips the lines that an incomplete write left, from `line` on, if one of the next lines is a `gap` record that
    /// states their number of bytes. Returns whether lines were skipped. No signature covers them, so that an object among
    /// them, which readers would show as a record, is a fault.
    fn skips_torn(&mut self, line: &LogLine) -> io::Result<bool> {
        let mut objects: Vec<u64> = line.is_object.then_some(line.number).into_iter().collect();
        for ahead in 0..TORN_LINES_MAX {
            let (expected, prev) = (self.expected, self.prev);
            let Some(next) = self.lines.peek(ahead)? else { return Ok(false) };
            let is_gap = next.record.as_ref().is_some_and(|SignedRecord { members, .. }| {
                members.event == "gap"
                    && members.seq == expected
                    && Some(members.prev) == prev
                    && members.torn > 0
                    && next.start - line.start == members.torn + 1
            });
            if is_gap {
                for _ in 0..ahead {
                    self.lines.next()?;
                }
                for number in objects {
                    self.fault(Some(number), None, "inserted: a record in place of an incomplete one".into());
                }
                return Ok(true);
            }
            objects.extend(next.is_object.then_some(next.number));
        }
        Ok(false)
    }

    fn handle_invalid_line(&mut self, number: u64, hash: Hash) -> io::Result<()> {
        if self.next_is_expected()? {
            self.fault(Some(number), None, "inserted: a line that is not a record".into());
            return Ok(());
        }
        self.fault(Some(number), Some(self.expected), "changed: the line is no longer a record".into());
        self.before = self.prev.map(|prev| (number, prev));
        (self.expected, self.prev, self.is_reported) = (self.expected + 1, Some(hash), true);
        self.chain.records += 1;
        self.chain.unsigned += 1;
        Ok(())
    }

    /// Reports a record with the expected sequence number whose `prev` is not the hash of the previous line: one of the
    /// two lines was changed. `number` and `hash` are the number and the hash of the record's line.
    fn report_hash_mismatch(&mut self, number: u64, hash: Hash, record: &SignedRecord) -> io::Result<()> {
        let seq = record.members.seq;
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        let next_agrees = next.map(|next| next.members.prev == hash);
        let is_intact = record.signature.or(next_agrees);
        let before = self.before.map(|(line, _)| line);
        self.is_reported = is_intact == Some(false);
        match is_intact {
            Some(true) => self.fault(before, seq.checked_sub(1), "changed: its hash differs from the one in the next record".into()),
            Some(false) => self.fault(Some(number), Some(seq), "changed: its hash differs from the one in the next record, and it does not contain the hash of the previous record".into()),
            None => self.fault(Some(number), Some(seq), "changed: this record or the previous one".into()),
        }
        Ok(())
    }

    fn advance(&mut self, number: u64, hash: Hash, record: SignedRecord) -> io::Result<ChainMembers> {
        let SignedRecord { members, signature } = record;
        let must_be_signed = self.rules.signed.is_none_or(|events| events.contains(&members.event.as_str()));
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        let next_agrees = next.is_none_or(|next| next.members.prev == hash);
        if must_be_signed && signature != Some(true) {
            if !self.is_reported {
                let description = match (signature, next_agrees) {
                    (_, false) => "changed: neither its signature nor its hash is valid",
                    (None, true) => "made anew: the signature is missing",
                    (Some(_), true) => {
                        "made anew: the signature is not valid for the key, so the records before it are not signed either"
                    }
                };
                self.fault(Some(number), Some(members.seq), description.into());
            }
            self.is_reported |= !next_agrees;
        }
        let chain = &mut self.chain;
        if chain.records == 0 {
            (chain.before, chain.first) = (members.prev, hash);
        }
        chain.records += 1;
        chain.unsigned = if signature == Some(true) { 0 } else { chain.unsigned + 1 };
        (chain.last, chain.last_seq) = (hash, self.expected);
        self.before = Some((number, members.prev));
        (self.expected, self.prev) = (self.expected + 1, Some(hash));
        Ok(members)
    }

    /// Reports a record whose sequence number is lower than expected: it was moved or inserted. `number` and `hash` are
    /// the number and the hash of the record's line.
    fn check_repeated(&mut self, number: u64, hash: Hash, record: &SignedRecord) -> io::Result<()> {
        let (seq, prev) = (record.members.seq, record.members.prev);
        if self.take_missing(seq) {
            let description = format!("reordered: it comes after record {}", self.expected - 1);
            self.fault(Some(number), Some(seq), description);
            return Ok(());
        }
        let next_is_after_this = |next: Option<&LogLine>| {
            next.and_then(|next| next.record.as_ref()).is_some_and(|next| next.members.prev == hash)
        };
        if seq + 1 == self.expected
            && let Some((line, before)) = self.before
            && before == prev
            && self.prev != Some(hash)
            && next_is_after_this(self.lines.peek(0)?)
        {
            let description =
                format!("inserted: record {seq} is in line {number}, and the chain continues from there");
            self.fault(Some(line), Some(seq), description);
            self.prev = Some(hash);
            self.chain.last = hash;
            return Ok(());
        }
        self.fault(Some(number), Some(seq), format!("inserted: record {seq} occurred before"));
        Ok(())
    }

    fn next_is_expected(&mut self) -> io::Result<bool> {
        let (expected, prev) = (self.expected, self.prev);
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        Ok(next.is_some_and(|next| next.members.seq == expected && Some(next.members.prev) == prev))
    }

    /// Remembers a record whose sequence number is too high, because the position to which the record belongs may
    /// follow later in the file.
    fn record_early(&mut self, seq: u64, line: u64) {
        if self.early_records.len() < PENDING_RANGES_MAX {
            self.early_records.push(SequenceRange { from: seq, to: seq, line });
        } else {
            self.fault(Some(line), Some(seq), "inserted, or moved from its position".into());
        }
    }

    /// Remembers that the records with the sequence numbers `from` to `to` are missing before the line `line`, because
    /// they may follow later in the file. If only one record is missing and that record came too early, reports that
    /// the record was moved.
    fn expect_later(&mut self, from: u64, to: u64, line: u64) {
        if from == to
            && let Some(at) = self.early_records.iter().position(|record_early| record_early.from == from)
        {
            let record_early = self.early_records.swap_remove(at);
            self.fault(
                Some(record_early.line),
                Some(from),
                format!("reordered: it comes before its position in line {line}"),
            );
        } else if self.missing.len() < PENDING_RANGES_MAX {
            self.missing.push(SequenceRange { from, to, line });
        } else {
            self.fault(Some(line), Some(from), dropped_message(from, to));
        }
    }

    /// Removes a sequence number from those of the missing records. Returns whether the record was missing.
    fn take_missing(&mut self, seq: u64) -> bool {
        let Some(at) = self.missing.iter().position(|range| (range.from..=range.to).contains(&seq)) else {
            return false;
        };
        let SequenceRange { from, to, line } = self.missing.swap_remove(at);
        if from < seq {
            self.missing.push(SequenceRange { from, to: seq - 1, line });
        }
        if seq < to {
            self.missing.push(SequenceRange { from: seq + 1, to, line });
        }
        true
    }

    fn finish(mut self) -> ChainSummary {
        for SequenceRange { from, to, line } in std::mem::take(&mut self.missing) {
            self.fault(Some(line), Some(from), dropped_message(from, to));
        }
        for SequenceRange { from, line, .. } in std::mem::take(&mut self.early_records) {
            let description = format!("inserted: the next record number is {}", self.expected);
            self.fault(Some(line), Some(from), description);
        }
        self.chain
    }

    fn fault(&mut self, line: Option<u64>, seq: Option<u64>, what: String) {
        let file = self.rules.file.clone();
        (self.report)(Finding { kind: FindingKind::Fault, file, line, seq, what });
    }

    fn note(&mut self, line: &LogLine, seq: Option<u64>, what: &str) {
        let file = self.rules.file.clone();
        (self.report)(Finding {
            kind: FindingKind::Note,
            file,
            line: Some(line.number),
            seq,
            what: what.into(),
        });
    }
}

/// Whether a record is a signed `cut` record. The index of segments starts with such a record after its older lines
/// were removed.
fn is_index_cut(record: &SignedRecord) -> bool {
    record.members.event == "cut" && record.signature == Some(true)
}

fn dropped_message(from: u64, to: u64) -> String {
    match from == to {
        true => format!("dropped: record {from} is missing before this line"),
        false => format!("dropped: records {from} to {to} are missing before this line"),
    }
}
