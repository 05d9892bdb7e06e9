//! One chain, line by line: what was changed, dropped, inserted or moved in it.
//!
//! Each record has its number and the hash of the line before it. Where they do not fit, the lines around tell which of
//! them is the one that was touched.

use std::io::{self, BufRead};

use super::super::line::Hash;
use super::lines::{Line, Lines, Members, Signed, unhex};
use super::{Finding, Kind};

/// Places in one file of which more is to be told at its end.
const OPEN_MAX: usize = 10_000;
/// Lines that one piece of a record may have become.
const TORN_LINES_MAX: usize = 8;

/// What is expected of a chain.
pub(super) struct Rules {
    /// What the log calls the file.
    pub(super) file: String,
    /// Events that must be signed; none for all of them.
    pub(super) signed: Option<&'static [&'static str]>,
}

/// What a chain came to.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) records: u64,
    /// The first record's hash of what comes before.
    pub(super) before: Hash,
    pub(super) first: Hash,
    pub(super) last: Hash,
    pub(super) last_seq: u64,
    /// Records after the last signature.
    pub(super) unsigned: u64,
}

/// A record that should be here and was not found yet, or one too many.
struct Place {
    from: u64,
    to: u64,
    line: u64,
}

struct Walk<'a, R> {
    rules: Rules,
    lines: Lines<'a, R>,
    tell: &'a mut dyn FnMut(Finding),
    walked: Walked,
    expected: u64,
    prev: Option<Hash>,
    /// Of the line before: number of line, what it had for `prev`, and whether something is wrong with it anyway.
    before: Option<(u64, Hash)>,
    is_blamed: bool,
    missing: Vec<Place>,
    strays: Vec<Place>,
}

/// Walks along a chain. `seen` gets every record that is in its place.
pub(super) fn walk<R: BufRead>(
    rules: Rules,
    lines: Lines<'_, R>,
    tell: &mut dyn FnMut(Finding),
    mut seen: impl FnMut(&Members, u64, Hash, &mut dyn FnMut(Finding)),
) -> io::Result<Walked> {
    let mut walk = Walk {
        rules,
        lines,
        tell,
        walked: Walked::default(),
        expected: 0,
        prev: None,
        before: None,
        is_blamed: false,
        missing: Vec::new(),
        strays: Vec::new(),
    };
    while let Some(line) = walk.lines.next()? {
        if !line.is_whole {
            walk.note(
                &line,
                None,
                "the last line is cut off: its process ended while it was written, or writes it now",
            );
            break;
        }
        let (number, hash) = (line.number, line.hash);
        if let Some(members) = walk.take(line)? {
            seen(&members, number, hash, walk.tell);
        }
    }
    Ok(walk.finish())
}

impl<R: BufRead> Walk<'_, R> {
    /// The record, if it is the next one of the chain.
    fn take(&mut self, line: Line) -> io::Result<Option<Members>> {
        if !self.fits(&line) && self.skips_torn(&line)? {
            return Ok(None);
        }
        let Line { number, hash, record, .. } = line;
        let Some(record) = record else {
            return self.no_record(number, hash).map(|()| None);
        };
        let (seq, prev) = (record.members.seq, record.members.prev);
        if self.walked.records == 0 && self.rules.signed.is_none() && is_cut(&record) {
            self.expected = seq;
            let members = self.advance(number, hash, record)?;
            self.prev = unhex(&members.last);
            return Ok(Some(members));
        }
        let has_prev = self.prev.is_none_or(|expected| expected == prev);
        if seq == self.expected {
            if !has_prev && !self.is_blamed {
                self.blame(number, hash, &record)?;
            } else {
                self.is_blamed = false;
            }
            return self.advance(number, hash, record).map(Some);
        }
        if has_prev && self.prev.is_some() {
            let told = format!("changed: this was record {}, and now says that it is {seq}", self.expected);
            self.fault(Some(number), Some(self.expected), told);
            self.is_blamed = true;
            return self.advance(number, hash, record).map(Some);
        }
        if seq > self.expected {
            if self.next_is_expected()? {
                self.stray(seq, number);
                return Ok(None);
            }
            self.lack(self.expected, seq - 1, number);
            self.expected = seq;
            self.is_blamed = false;
            return self.advance(number, hash, record).map(Some);
        }
        self.too_late(number, hash, &record)?;
        Ok(None)
    }

    fn fits(&self, line: &Line) -> bool {
        line.record.as_ref().is_some_and(|Signed { members, .. }| {
            members.seq == self.expected && self.prev.is_none_or(|prev| prev == members.prev)
        })
    }

    /// Pieces that a process could not write whole and could not take back, if a record says so.
    fn skips_torn(&mut self, line: &Line) -> io::Result<bool> {
        for ahead in 0..TORN_LINES_MAX {
            let (expected, prev) = (self.expected, self.prev);
            let Some(next) = self.lines.peek(ahead)? else { return Ok(false) };
            let Some(Signed { members, .. }) = &next.record else { continue };
            if members.event == "gap"
                && members.seq == expected
                && Some(members.prev) == prev
                && members.torn > 0
                && next.start - line.start == members.torn + 1
            {
                for _ in 0..ahead {
                    self.lines.next()?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn no_record(&mut self, number: u64, hash: Hash) -> io::Result<()> {
        if self.next_is_expected()? {
            self.fault(Some(number), None, "inserted: a line that is no record".into());
            return Ok(());
        }
        self.fault(Some(number), Some(self.expected), "changed: the line is no record any more".into());
        self.before = self.prev.map(|prev| (number, prev));
        (self.expected, self.prev, self.is_blamed) = (self.expected + 1, Some(hash), true);
        self.walked.records += 1;
        self.walked.unsigned += 1;
        Ok(())
    }

    /// A record is where it belongs and has not the hash of the line before: one of the two was changed.
    fn blame(&mut self, number: u64, hash: Hash, record: &Signed) -> io::Result<()> {
        let seq = record.members.seq;
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        let next_agrees = next.map(|next| next.members.prev == hash);
        let is_intact = record.signature.or(next_agrees);
        let before = self.before.map(|(line, _)| line);
        self.is_blamed = is_intact == Some(false);
        match is_intact {
            Some(true) => self.fault(before, seq.checked_sub(1), "changed: its hash is not what the next record says".into()),
            Some(false) => self.fault(Some(number), Some(seq), "changed: its hash is not what the next record says, and it has not the hash of the one before".into()),
            None => self.fault(Some(number), Some(seq), "changed: this record or the one before it".into()),
        }
        Ok(())
    }

    fn advance(&mut self, number: u64, hash: Hash, record: Signed) -> io::Result<Members> {
        let Signed { members, signature } = record;
        let must_be_signed = self.rules.signed.is_none_or(|events| events.contains(&members.event.as_str()));
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        let next_agrees = next.is_none_or(|next| next.members.prev == hash);
        if must_be_signed && signature != Some(true) {
            if !self.is_blamed {
                let told = match (signature, next_agrees) {
                    (_, false) => "changed: neither its signature nor its hash is right",
                    (None, true) => "made anew: its signature is missing, and it cannot be without one",
                    (Some(_), true) => {
                        "made anew: it is not signed with the key, and neither is what it stands for before it"
                    }
                };
                self.fault(Some(number), Some(members.seq), told.into());
            }
            self.is_blamed |= !next_agrees;
        }
        let walked = &mut self.walked;
        if walked.records == 0 {
            (walked.before, walked.first) = (members.prev, hash);
        }
        walked.records += 1;
        walked.unsigned = if signature == Some(true) { 0 } else { walked.unsigned + 1 };
        (walked.last, walked.last_seq) = (hash, self.expected);
        self.before = Some((number, members.prev));
        (self.expected, self.prev) = (self.expected + 1, Some(hash));
        Ok(members)
    }

    /// A record whose number has been.
    fn too_late(&mut self, number: u64, hash: Hash, record: &Signed) -> io::Result<()> {
        let (seq, prev) = (record.members.seq, record.members.prev);
        if self.found(seq) {
            let told = format!("reordered: it stands after record {}", self.expected - 1);
            self.fault(Some(number), Some(seq), told);
            return Ok(());
        }
        let next_is_after_this = |next: Option<&Line>| {
            next.and_then(|next| next.record.as_ref()).is_some_and(|next| next.members.prev == hash)
        };
        if seq + 1 == self.expected
            && let Some((line, before)) = self.before
            && before == prev
            && self.prev != Some(hash)
            && next_is_after_this(self.lines.peek(0)?)
        {
            let told =
                format!("inserted: record {seq} is in line {number}, and the chain goes on from there");
            self.fault(Some(line), Some(seq), told);
            self.prev = Some(hash);
            self.walked.last = hash;
            return Ok(());
        }
        self.fault(Some(number), Some(seq), format!("inserted: record {seq} has been already"));
        Ok(())
    }

    fn next_is_expected(&mut self) -> io::Result<bool> {
        let (expected, prev) = (self.expected, self.prev);
        let next = self.lines.peek(0)?.and_then(|next| next.record.as_ref());
        Ok(next.is_some_and(|next| next.members.seq == expected && Some(next.members.prev) == prev))
    }

    /// A record too early: it may be missed later.
    fn stray(&mut self, seq: u64, line: u64) {
        if self.strays.len() < OPEN_MAX {
            self.strays.push(Place { from: seq, to: seq, line });
        } else {
            self.fault(Some(line), Some(seq), "inserted, or moved from its place".into());
        }
    }

    /// Records that are not here: they may come later, or have been too early.
    fn lack(&mut self, from: u64, to: u64, line: u64) {
        if from == to
            && let Some(at) = self.strays.iter().position(|stray| stray.from == from)
        {
            let stray = self.strays.swap_remove(at);
            self.fault(
                Some(stray.line),
                Some(from),
                format!("reordered: it stands before its place in line {line}"),
            );
        } else if self.missing.len() < OPEN_MAX {
            self.missing.push(Place { from, to, line });
        } else {
            self.fault(Some(line), Some(from), dropped(from, to));
        }
    }

    /// Whether this one was missing. It is not any more.
    fn found(&mut self, seq: u64) -> bool {
        let Some(at) = self.missing.iter().position(|place| (place.from..=place.to).contains(&seq)) else {
            return false;
        };
        let Place { from, to, line } = self.missing.swap_remove(at);
        if from < seq {
            self.missing.push(Place { from, to: seq - 1, line });
        }
        if seq < to {
            self.missing.push(Place { from: seq + 1, to, line });
        }
        true
    }

    fn finish(mut self) -> Walked {
        for Place { from, to, line } in std::mem::take(&mut self.missing) {
            self.fault(Some(line), Some(from), dropped(from, to));
        }
        for Place { from, line, .. } in std::mem::take(&mut self.strays) {
            let told = format!("inserted: its number would be {}", self.expected);
            self.fault(Some(line), Some(from), told);
        }
        self.walked
    }

    fn fault(&mut self, line: Option<u64>, seq: Option<u64>, what: String) {
        let file = self.rules.file.clone();
        (self.tell)(Finding { kind: Kind::Fault, file, line, seq, what });
    }

    fn note(&mut self, line: &Line, seq: Option<u64>, what: &str) {
        let file = self.rules.file.clone();
        (self.tell)(Finding { kind: Kind::Note, file, line: Some(line.number), seq, what: what.into() });
    }
}

/// The beginning of an index of which older lines are gone.
fn is_cut(record: &Signed) -> bool {
    record.members.event == "cut" && record.signature == Some(true)
}

fn dropped(from: u64, to: u64) -> String {
    match from == to {
        true => format!("dropped: record {from} is missing before this line"),
        false => format!("dropped: records {from} to {to} are missing before this line"),
    }
}
