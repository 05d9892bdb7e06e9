//! Verifies that the audit log is unchanged. Checks each hash chain, the links between segments, and the segments
//! against their index.

mod chain_check;
mod chain_members;
mod head_check;
#[cfg(test)]
mod history;
mod index_check;
mod key_succession;
mod line_reader;
mod program_check;
#[cfg(test)]
mod tampering_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod version_1_tests;

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::Path;

use super::chain_writer::VERSION;
use super::hash_chain::Hash;
use super::log_head::LogHead;
use super::program_store;
use super::reader::ReadError;
use super::segment::SegmentName;
use super::segment_index::INDEX;
use super::signing::PublicKey;
use chain_check::{ChainRules, ChainSummary, check_chain};
use chain_members::ChainMembers;
use data_encoding::HEXLOWER;
use index_check::{Index, IndexEntry, IndexWithSegments, read_index};
use key_succession::{KeySuccession, Version1Keys};
use line_reader::LineReader;
use lockhouse_base::files;
use program_check::ProgramCheck;

const SIGNED: [&str; 3] = ["open", "checkpoint", "close"];

/// A finding of the verification: a fault of the audit log, or a note about it.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: FindingKind,
    pub file: String,
    /// Number of the line that the finding is about, starting at 1. `None` if it is about the whole file.
    pub line: Option<u64>,
    pub seq: Option<u64>,
    pub what: String,
}

/// Severity of a finding in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The audit log was changed after it was written.
    Fault,
    /// Information about the audit log that does not indicate a change.
    Note,
}

/// What is verified: the original audit log or a copy. This decides which parts of the log must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLocation {
    /// The original directory of the audit log. All parts must be present.
    Original,
    /// A copy of the audit log, or a part of it. Stored programs may be missing.
    Copy,
    /// An audit log of which only the hash chains are verified, and not the stored programs.
    ChainOnly,
}

/// What a log is verified against.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    pub key: TrustedKey<'a>,
    /// The public keys of administrators, whose countersignature a key needs that replaces a lost one.
    pub administrators: &'a [PublicKey],
    /// An earlier head of the log, which it must contain.
    pub head: Option<&'a LogHead>,
}

/// The key that the index of a log must have.
#[derive(Clone, Copy, Debug)]
pub enum TrustedKey<'a> {
    /// A key that was stored elsewhere: it must have signed a line, or be the key of the next line.
    Stored(&'a PublicKey),
    /// The key in the directory `keys`, which belongs to the log in the directory `log`: it must be the key of the next line.
    /// An earlier copy of this log is trusted too.
    Local { keys: &'a Path, log: &'a Path },
}

impl<'a> From<TrustedKey<'a>> for Trust<'a> {
    /// Trusts a key, and no administrator, without an earlier head.
    fn from(key: TrustedKey<'a>) -> Self {
        Self { key, administrators: &[], head: None }
    }
}

/// Result of a verification: how much was verified, and how many faults were found.
#[derive(Clone, Debug, Default)]
pub struct VerificationSummary {
    pub segments: u64,
    /// Number of stored programs whose content matches the audit records.
    pub programs: u64,
    pub records: u64,
    /// Number of records that no signature covers: those after the last signature of their segment.
    pub unsigned: u64,
    pub faults: u64,
    /// The key of the next line of the index: for a log of version 1, of all lines. `None` if it is not known.
    pub key: Option<PublicKey>,
}

/// What verification learned from the lines of a segment.
#[derive(Debug, Default)]
struct SegmentSummary {
    chain: ChainSummary,
    previous: Option<String>,
    is_closed: bool,
    /// The hash of the record that the head names, against which the log is verified.
    at_head: Option<Hash>,
}

/// Verifies the audit log in a directory, or one of its segments, against a trusted key. Calls `report` for each finding.
///
/// # Errors
/// [`ReadError`] if a file of the log cannot be read.
pub fn verify(
    path: &Path,
    location: LogLocation,
    trust: &Trust<'_>,
    report: &mut dyn FnMut(Finding),
) -> Result<VerificationSummary, ReadError> {
    let mut faults = 0;
    let mut counted = |finding: Finding| {
        faults += u64::from(finding.kind == FindingKind::Fault);
        report(finding);
    };
    let one = path
        .is_file()
        .then(|| path.file_name().and_then(|name| SegmentName::parse(name.to_str()?)))
        .flatten();
    let directory = match &one {
        Some(_) => path.parent().unwrap_or(Path::new(".")),
        None => path,
    };
    let to_read_error = |source| ReadError { path: directory.to_owned(), source };
    let read = read_index(directory, location, trust, &mut counted).map_err(to_read_error)?;
    let IndexWithSegments { index: listed, names } = read;
    if names.is_empty() && listed.as_ref().is_none_or(|listed| listed.entries.is_empty()) {
        report_empty_log(directory, &mut counted);
    }
    let wanted: Vec<&SegmentName> =
        names.iter().filter(|name| one.as_ref().is_none_or(|one| one == *name)).collect();
    let mut programs = ProgramCheck::new(directory.to_owned(), location);
    let read = verify_segments(directory, &wanted, listed.as_ref(), trust, &mut programs, &mut counted)?;
    if one.is_none() {
        check_continuity(&read, &mut counted);
        check_removed(listed.as_ref(), &names, &mut counted);
        if let Some(head) = trust.head {
            head_check::check(head, listed.as_ref(), &read, &mut counted);
        }
    }
    let key =
        listed.as_ref().and_then(|index| index.next.clone().or_else(|| index.version_1.last().cloned()));
    programs.finish(&mut counted);
    Ok(VerificationSummary {
        segments: read.len() as u64,
        programs: programs.verified,
        records: read.values().map(|segment| segment.chain.records).sum(),
        unsigned: read.values().map(|segment| segment.chain.unsigned).sum(),
        faults,
        key,
    })
}

/// Verifies each segment, and compares it with the index. Returns what was learned about each segment, by its name.
/// Segments that were removed after they were listed, or replaced by another kind of file, are not in the result.
fn verify_segments<'n>(
    directory: &Path,
    names: &[&'n SegmentName],
    listed: Option<&Index>,
    trust: &Trust<'_>,
    programs: &mut ProgramCheck,
    report: &mut dyn FnMut(Finding),
) -> Result<BTreeMap<&'n str, SegmentSummary>, ReadError> {
    let mut read = BTreeMap::new();
    for name in names {
        let path = directory.join(name.as_str());
        let segment =
            match verify_segment(&path, name, SegmentTrust { index: listed, trust }, programs, report) {
                Ok(segment) => segment,
                // The segment has expired and was removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if files::is_not_regular_file(&error) => {
                    fault(report, name.as_str(), format!("replaced: {error}"));
                    continue;
                }
                Err(source) => return Err(ReadError { path, source }),
            };
        check_against_index(
            name.as_str(),
            &segment,
            listed.map(|all| all.entries.get(name.as_str())),
            report,
        );
        read.insert(name.as_str(), segment);
    }
    Ok(read)
}

/// Checks that each segment continues the hash chain of its predecessor.
fn check_continuity(segments: &BTreeMap<&str, SegmentSummary>, report: &mut dyn FnMut(Finding)) {
    for (name, summary) in segments {
        let before = summary.previous.as_deref().and_then(|previous| segments.get(previous));
        if before.is_some_and(|before| before.chain.last != summary.chain.before) {
            let previous = summary.previous.as_deref().unwrap_or_default();
            let what =
                format!("it does not continue the chain of {previous}: one of them was changed or truncated");
            fault(report, name, what);
        }
    }
}

/// Checks that every unexpired segment in the index exists.
fn check_removed(listed: Option<&Index>, names: &[SegmentName], report: &mut dyn FnMut(Finding)) {
    for (name, listed) in listed.into_iter().flat_map(|index| &index.entries) {
        if !listed.is_expired && !names.iter().any(|there| there.as_str() == name) {
            fault(report, name, "removed: it is in the index, and the file is missing".into());
        }
    }
}

/// Reports that the audit log has no segments: as a fault if there are stored programs, because segments must have
/// existed then; else as a note.
fn report_empty_log(directory: &Path, report: &mut dyn FnMut(Finding)) {
    if program_store::contains_programs(directory) {
        let what = "removed: there are stored programs, and neither segments nor an index";
        return fault(report, INDEX, what.into());
    }
    let what = "the log is empty: nothing was recorded yet, or everything was removed; nothing was verified";
    report(Finding {
        kind: FindingKind::Note,
        file: directory.display().to_string(),
        line: None,
        seq: None,
        what: what.into(),
    });
}

fn fault(report: &mut dyn FnMut(Finding), file: &str, what: String) {
    report(Finding { kind: FindingKind::Fault, file: file.to_owned(), line: None, seq: None, what });
}

/// What a segment is verified against.
#[derive(Clone, Copy)]
struct SegmentTrust<'a> {
    index: Option<&'a Index>,
    trust: &'a Trust<'a>,
}

impl SegmentTrust<'_> {
    /// Whether a key may have signed a segment of version 1: it is a key of the index.
    fn has_key(&self, key: &str) -> bool {
        match (self.index, self.trust.key) {
            (Some(index), _) if !index.keys.is_empty() => index.keys.contains(key),
            (_, TrustedKey::Stored(trusted)) => trusted.to_hex() == key,
            (_, TrustedKey::Local { .. }) => false,
        }
    }
}

fn verify_segment(
    path: &Path,
    name: &SegmentName,
    trusted: SegmentTrust<'_>,
    programs: &mut ProgramCheck,
    report: &mut dyn FnMut(Finding),
) -> io::Result<SegmentSummary> {
    let reader = BufReader::with_capacity(256 * 1024, files::open_to_read(path)?);
    let (mut previous, mut is_closed, mut at_head) = (None, false, None);
    let head = trusted.trust.head.and_then(|head| head.segment(name.as_str()));
    let mut succession = KeySuccession::default();
    let rules = ChainRules { file: name.to_string(), signed: Some(&SIGNED) };
    let seen = |members: &ChainMembers, line: u64, hash: Hash, report: &mut dyn FnMut(Finding)| {
        let mut report_finding = |kind: FindingKind, what: String| {
            report(Finding { kind, file: name.to_string(), line: Some(line), seq: Some(members.seq), what });
        };
        if is_closed {
            report_finding(FindingKind::Fault, "inserted: a record after the end of the segment".into());
        }
        if head.is_some_and(|head| head.seq == members.seq) {
            at_head = Some(hash);
        }
        if let Some(what) = check_segment_key(members, &mut succession) {
            report_finding(FindingKind::Fault, what.into());
        }
        match (members.seq, members.event.as_str()) {
            (0, "open") => {
                previous = members.previous.clone();
                check_open(members, name, trusted, &mut report_finding);
            }
            (0, _) | (_, "open") => report_finding(
                FindingKind::Fault,
                "inserted: `open` must be the first record of a segment, and occur only there".into(),
            ),
            (_, "close") => is_closed = true,
            (_, "gap") => report_finding(FindingKind::Note, describe_gap(members)),
            (_, "clock") => report_finding(FindingKind::Note, describe_jump(members)),
            (_, "execution" | "skill") => programs.check(members, &mut report_finding),
            _ => {}
        }
    };
    let version_1 = trusted.index.map(|index| index.version_1.clone()).unwrap_or_default();
    let chain = check_chain(rules, LineReader::new(reader, Version1Keys::new(version_1)), report, seen)?;
    Ok(SegmentSummary { chain, previous, is_closed, at_head })
}

/// Checks the first record of a segment.
fn check_open(
    members: &ChainMembers,
    name: &SegmentName,
    trusted: SegmentTrust<'_>,
    report: &mut dyn FnMut(FindingKind, String),
) {
    let ChainMembers { version, segment, key, .. } = members;
    if !(1..=VERSION).contains(version) {
        let what = format!("its format version is {version}; this Lockhouse supports version {VERSION}");
        report(FindingKind::Note, what);
    }
    if segment != name.as_str() {
        report(FindingKind::Fault, format!("renamed: its first record names the segment {segment}"));
    }
    if *version == 1 && !trusted.has_key(key) {
        report(FindingKind::Fault, format!("made anew: it names another key, {key}"));
    }
}

fn describe_gap(members: &ChainMembers) -> String {
    let ChainMembers { records, torn, reason, .. } = members;
    let piece = match torn {
        0 => String::new(),
        torn => format!(", and {torn} bytes before it are an incomplete record"),
    };
    format!("{records} records before this line could not be written{piece}: {reason}")
}

/// Checks that the key of a signed record is the one that the signed record before it names. Returns what is wrong.
fn check_segment_key(members: &ChainMembers, succession: &mut KeySuccession) -> Option<&'static str> {
    let is_first = members.seq == 0 && members.event == "open";
    if !SIGNED.contains(&members.event.as_str()) || (is_first && members.version == 1) {
        return None;
    }
    if members.key.is_empty() {
        return succession.has_keys().then_some("made anew: it names no key");
    }
    let is_expected = succession.accepts(members);
    (!is_expected).then_some("made anew: its key is not the one that the signed record before it names")
}

fn describe_jump(members: &ChainMembers) -> String {
    let ChainMembers { from, to, difference_s, .. } = members;
    let size = match difference_s.abs() {
        seconds if seconds >= 2.0 * 86_400.0 => format!("{:.0} days", seconds / 86_400.0),
        seconds if seconds >= 2.0 * 3_600.0 => format!("{:.0} hours", seconds / 3_600.0),
        seconds => format!("{seconds:.0} s"),
    };
    let direction = if *difference_s < 0.0 { "back" } else { "forward" };
    format!(
        "the clock was set {direction} by {size}, from {from} to {to}: the times of records before and after this line differ \
         by that; the log expires by its own age"
    )
}

fn check_against_index(
    name: &str,
    summary: &SegmentSummary,
    listed: Option<Option<&IndexEntry>>,
    report: &mut dyn FnMut(Finding),
) {
    let SegmentSummary { chain, is_closed, .. } = summary;
    if !is_closed {
        let what = match chain.unsigned {
            0 => "it is not closed: its process is running or was killed; all records are signed".into(),
            count => format!(
                "it is not closed: its process is running or was killed; {count} records are after the last signature"
            ),
        };
        report(Finding { kind: FindingKind::Note, file: name.to_owned(), line: None, seq: None, what });
    }
    let Some(listed) = listed else { return };
    let Some(IndexEntry { opened: Some(first), closed, .. }) = listed else {
        // A process that was killed right after it created the segment has no index entry yet.
        if chain.records > 1 {
            fault(report, name, "inserted: it is not in the index, or the index was truncated".into());
        }
        return;
    };
    if *first != HEXLOWER.encode(&chain.first) {
        fault(report, name, "made anew: its first record differs from the index".into());
    }
    match closed {
        Some((last_seq, _)) if *last_seq > chain.last_seq => {
            let what = format!(
                "truncated: it ends with record {}; according to the index, the last record is {last_seq}",
                chain.last_seq
            );
            fault(report, name, what);
        }
        Some((_, last)) if *last != HEXLOWER.encode(&chain.last) => {
            fault(report, name, "made anew: its last record differs from the index".into());
        }
        _ => {}
    }
}
