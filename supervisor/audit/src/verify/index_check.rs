//! Verification of the audit log: reads and verifies the index of segments, and checks that it has a trusted key.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::ops::RangeInclusive;
use std::path::Path;

use lockhouse_base::files;
use nix::fcntl::FlockArg;
use serde::Deserialize;

use super::super::hash_chain::Hash;
use super::super::log_key;
use super::super::segment::{SegmentName, segments};
use super::super::segment_index::{self, INDEX, INDEX_LINE_BYTES_MAX};
use super::super::signing::PublicKey;
use super::chain_check::{ChainRules, check_chain};
use super::chain_members::ChainMembers;
use super::key_succession::{KeySuccession, Version1Keys};
use super::line_reader::LineReader;
use super::{Finding, FindingKind, LogLocation, Trust, TrustedKey, fault};

/// What the index of segments states about one segment.
#[derive(Debug, Default)]
pub(super) struct IndexEntry {
    pub(super) opened: Option<String>,
    pub(super) closed: Option<(u64, String)>,
    pub(super) is_expired: bool,
}

/// What verification learned from the index of segments.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) entries: BTreeMap<String, IndexEntry>,
    /// All keys that lines of the index name or are signed with.
    pub(super) keys: HashSet<String>,
    /// The keys of lines that do not name their key, which are of version 1.
    pub(super) version_1: Vec<PublicKey>,
    /// The key of the next line.
    pub(super) next: Option<PublicKey>,
    /// The numbers of its lines. `None` if it has none.
    pub(super) lines: Option<RangeInclusive<u64>>,
    /// The keys that signed lines.
    signers: HashSet<String>,
}

/// The index and the names of the segments, both as of the same moment, so that they agree.
pub(super) struct IndexWithSegments {
    /// `None` if the file is missing or is not a regular file.
    pub(super) index: Option<Index>,
    pub(super) names: Vec<SegmentName>,
}

#[derive(Deserialize)]
struct LineKeys {
    #[serde(default)]
    key: String,
    next: Option<String>,
}

/// Reads and verifies the index of the log in `directory`.
pub(super) fn read_index(
    directory: &Path,
    location: LogLocation,
    trust: &Trust<'_>,
    report: &mut dyn FnMut(Finding),
) -> io::Result<IndexWithSegments> {
    let file = match files::open_to_read(&directory.join(INDEX)) {
        Ok(file) => file,
        Err(error) => return without_index(directory, location, error, report),
    };
    // Writers wait for this lock, so it is held only while all three are read.
    let file = segment_index::lock(file, FlockArg::LockSharedNonblock)?;
    let (names, bytes) = (segments(directory)?, file.metadata()?.len());
    let trusted = match trust.key {
        TrustedKey::Stored(key) => HashSet::from([key.clone()]),
        TrustedKey::Local { keys, .. } => log_key::public_keys(keys).map_err(io::Error::other)?,
    };
    let file = file.unlock().map_err(|(_, error)| error)?;
    let index = check_lines(file, bytes, &trusted, trust, report)?;
    check_trust(&index, directory, trusted, trust, report)?;
    Ok(IndexWithSegments { index: Some(index), names })
}

fn without_index(
    directory: &Path,
    location: LogLocation,
    error: io::Error,
    report: &mut dyn FnMut(Finding),
) -> io::Result<IndexWithSegments> {
    if files::is_not_regular_file(&error) {
        fault(report, INDEX, format!("replaced: {error}"));
        return Ok(IndexWithSegments { index: None, names: segments(directory)? });
    }
    if error.kind() != io::ErrorKind::NotFound {
        return Err(error);
    }
    let names = match segments(directory) {
        // Either nothing was recorded yet, or everything was removed.
        Err(error) if location == LogLocation::Original && error.kind() == io::ErrorKind::NotFound => {
            Vec::new()
        }
        names => names?,
    };
    if !names.is_empty() {
        fault(report, INDEX, "removed: there are segments, and the index is missing".into());
    }
    Ok(IndexWithSegments { index: None, names })
}

/// Collects the keys that lines of the index name, without a check. Lines of version 1 name none, and have one of these.
fn collect_keys(file: &mut File, bytes: u64) -> io::Result<Vec<PublicKey>> {
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    let mut reader = BufReader::new(file.take(bytes));
    let mut line = Vec::new();
    while reader.by_ref().take(INDEX_LINE_BYTES_MAX).read_until(b'\n', &mut line)? > 0 {
        if let Ok(LineKeys { key, next: Some(next) }) = serde_json::from_slice(&line) {
            keys.extend(
                [key, next]
                    .iter()
                    .filter_map(|key| PublicKey::from_hex(key))
                    .filter(|key| seen.insert(key.clone())),
            );
        }
        line.clear();
    }
    file.rewind()?;
    Ok(keys)
}

fn check_lines(
    mut file: File,
    bytes: u64,
    trusted: &HashSet<PublicKey>,
    trust: &Trust<'_>,
    report: &mut dyn FnMut(Finding),
) -> io::Result<Index> {
    let named = collect_keys(&mut file, bytes)?;
    let candidates = trusted.iter().chain(&named).cloned().collect();
    let keys: HashSet<String> = named.iter().map(PublicKey::to_hex).collect();
    let mut index = Index { keys, ..Index::default() };
    let mut succession = KeySuccession::default();
    let lines = LineReader::new(BufReader::new(file.take(bytes)), Version1Keys::new(candidates));
    let rules = ChainRules { file: INDEX.into(), signed: None };
    let seen = |members: &ChainMembers, line: u64, hash: Hash, report: &mut dyn FnMut(Finding)| {
        let finding =
            |kind, what| Finding { kind, file: INDEX.into(), line: Some(line), seq: Some(members.seq), what };
        if let Some((kind, what)) = check_key(members, &mut succession, &mut index, trust) {
            report(finding(kind, what));
        }
        if let Some(what) = trust.head.and_then(|head| head.check_line(members, &hash)) {
            report(finding(FindingKind::Fault, what));
        }
        let first = index.lines.as_ref().map_or(members.seq, |lines| *lines.start());
        index.lines = Some(first..=members.seq);
        if members.segment.is_empty() {
            return;
        }
        let listed = index.entries.entry(members.segment.clone()).or_default();
        match members.event.as_str() {
            "opened" => listed.opened = Some(members.first.clone()),
            "closed" => listed.closed = Some((members.last_seq, members.last.clone())),
            "expired" => listed.is_expired = true,
            _ => {}
        }
    };
    check_chain(rules, lines, report, seen)?;
    index.next = succession.expected.as_deref().and_then(PublicKey::from_hex);
    index.signers = succession.signers;
    Ok(index)
}

/// Checks the key of one line of the index. Returns a finding about it.
fn check_key(
    members: &ChainMembers,
    succession: &mut KeySuccession,
    index: &mut Index,
    trust: &Trust<'_>,
) -> Option<(FindingKind, String)> {
    if members.key.is_empty() {
        succession.add_signer(members);
        index.version_1.extend(members.signer.clone().filter(|key| !index.version_1.contains(key)));
        index.keys.extend(members.signer.as_ref().map(PublicKey::to_hex));
        return None;
    }
    if members.next.is_none() {
        // Only the first line of an index whose older lines were removed has a key and no successor.
        let what = "made anew: its key is not a key of the log";
        return (!index.keys.contains(&members.key)).then(|| (FindingKind::Fault, what.into()));
    }
    let lost = succession.expected.clone().unwrap_or_default();
    if succession.accepts(members) {
        return None;
    }
    if members.event != "rekey" {
        let what = "made anew: its key is not the one that the line before it names";
        return Some((FindingKind::Fault, what.into()));
    }
    Some(match members.countersigned_by(&lost, trust.administrators) {
        Some(administrator) => (
            FindingKind::Note,
            format!("the key was lost, and a new one begins here, countersigned by the administrator's key {}", administrator.to_hex()),
        ),
        None => (
            FindingKind::Fault,
            "rekeyed: the key was lost, and a new one begins here without the countersignature of a trusted administrator: the lines \
             before it may be incomplete"
                .into(),
        ),
    })
}

/// Checks that the index has a trusted key: a stored key that signed one of its lines, or is that of the next line; or the
/// local key, which must be that of the next line.
fn check_trust(
    index: &Index,
    directory: &Path,
    trusted: HashSet<PublicKey>,
    trust: &Trust<'_>,
    report: &mut dyn FnMut(Finding),
) -> io::Result<()> {
    let trusted: HashSet<String> = trusted.iter().map(PublicKey::to_hex).collect();
    let is_signer = || !index.signers.is_disjoint(&trusted);
    let next = index.next.as_ref().map(PublicKey::to_hex);
    let is_next = next.as_ref().is_some_and(|next| trusted.contains(next));
    match trust.key {
        _ if index.entries.is_empty() && index.signers.is_empty() => {}
        TrustedKey::Stored(key) if !is_next && !is_signer() => {
            let what = format!(
                "made anew: it is signed with another key; no line has the key {}, which expires with the oldest lines",
                key.to_hex()
            );
            fault(report, INDEX, what);
        }
        TrustedKey::Local { log, .. } if !is_next && (next.is_some() || !is_signer()) => {
            if is_earlier_copy(index, directory, log, trust)? {
                return Ok(());
            }
            let what = "rolled back or made anew: its last line names another key than that of the key file: lines were removed, or \
                        the log is another one";
            fault(report, INDEX, what.into());
        }
        _ => {}
    }
    Ok(())
}

/// Whether an index in another directory than that of the log is an earlier copy of the log's index: the index of the log has
/// its keys.
fn is_earlier_copy(index: &Index, directory: &Path, log: &Path, trust: &Trust<'_>) -> io::Result<bool> {
    let same = |one: &Path, other: &Path| match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    if same(directory, log) || !log.join(INDEX).exists() {
        return Ok(false);
    }
    let mut faults = 0_u64;
    let trust = Trust { head: None, ..*trust };
    let own = read_index(log, LogLocation::Original, &trust, &mut |finding| {
        faults += u64::from(finding.kind == FindingKind::Fault);
    })?;
    let next = index.next.as_ref().map(PublicKey::to_hex);
    let is_own = |own: &Index| match next {
        Some(next) => own.keys.contains(&next),
        None => !own.keys.is_disjoint(&index.signers),
    };
    Ok(faults == 0 && own.index.as_ref().is_some_and(is_own))
}
