//! Verification of the audit log: compares the log with an earlier head, which a witness kept.

use std::collections::BTreeMap;

use super::super::hash_chain::Hash;
use super::super::log_head::{HeadSegment, LogHead};
use super::super::segment_index::INDEX;
use super::chain_members::ChainMembers;
use super::index_check::Index;
use super::{Finding, FindingKind, SegmentSummary, fault};
use data_encoding::HEXLOWER;

impl LogHead {
    /// Compares a line of the index with the head. Returns what is wrong.
    pub(super) fn check_line(&self, members: &ChainMembers, hash: &Hash) -> Option<String> {
        let seq = members.seq;
        // The line that replaces expired ones has the hash and the number of the last of them.
        let found = if members.event == "cut" { members.last.clone() } else { HEXLOWER.encode(hash) };
        let differs = seq.checked_add(1) == Some(self.lines) && found != self.hash;
        differs.then(|| format!("begun again or rewritten: the head of {} has another line {seq}", self.time))
    }

    /// Returns what the head says about a segment that was open.
    pub(super) fn segment(&self, name: &str) -> Option<&HeadSegment> {
        self.segments.iter().find(|segment| segment.segment == name)
    }
}

/// Checks that the log contains the head.
pub(super) fn check(
    head: &LogHead,
    index: Option<&Index>,
    segments: &BTreeMap<&str, SegmentSummary>,
    report: &mut dyn FnMut(Finding),
) {
    let time = &head.time;
    let lines = index.and_then(|index| index.lines.clone());
    match lines {
        _ if head.lines == 0 => {}
        Some(lines) if head.lines <= *lines.start() => {
            let what = format!(
                "cut: the lines of the head of {time} have expired, so that it cannot be compared; use a later head"
            );
            fault(report, INDEX, what);
        }
        Some(lines) if head.lines <= lines.end().saturating_add(1) => {}
        lines => {
            let what = format!(
                "rolled back or truncated: it has {} lines, and the head of {time} has {}",
                lines.map_or(0, |lines| lines.end().saturating_add(1)),
                head.lines
            );
            fault(report, INDEX, what);
        }
    }
    if index.is_none_or(|index| !index.keys.contains(&head.key)) {
        fault(report, INDEX, format!("begun again: the key of the head of {time} is not a key of the log"));
    }
    for segment in &head.segments {
        let name = segment.segment.as_str();
        let is_expired =
            index.and_then(|index| index.entries.get(name)).is_some_and(|entry| entry.is_expired);
        match check_segment(segment, segments.get(name), time) {
            // The holder of the present key can declare this at any time, so that it is told.
            Some(_) if is_expired => {
                let what = format!("it has expired since the head of {time}, according to the index");
                report(Finding { kind: FindingKind::Note, file: name.into(), line: None, seq: None, what });
            }
            Some(what) => fault(report, name, what),
            None => {}
        }
    }
}

fn check_segment(segment: &HeadSegment, found: Option<&SegmentSummary>, time: &str) -> Option<String> {
    let seq = segment.seq;
    match found {
        None => Some(format!("removed: it is in the head of {time}")),
        Some(found) => match found.at_head {
            None => Some(format!(
                "rolled back or truncated: it has no record {seq}, which is in the head of {time}"
            )),
            Some(hash) if HEXLOWER.encode(&hash) != segment.hash => {
                Some(format!("rewritten: the head of {time} has another record {seq}"))
            }
            Some(_) => None,
        },
    }
}
