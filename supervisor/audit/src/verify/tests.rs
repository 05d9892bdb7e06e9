//! Tests that the verification of the audit log detects tampering and reports its kind.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::super::chain_writer::{Intervals, Writer};
use super::super::hash_chain::{Chain, RecordBody};
use super::super::moment::tests::at;
use super::super::segment::segments;
use super::super::signing::SigningKey;
use super::*;

const RECORDS: usize = 20;
const CHECKPOINT: u64 = 6;

/// The audit log of one process, in a temporary directory.
struct Log {
    directory: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn written() -> Self {
        let log = Self::new();
        let mut writer = log.writer();
        log.fill(&mut writer, noon());
        writer.close(at(noon()), "exit");
        log
    }

    fn writer(&self) -> Writer {
        let intervals = Intervals { records: CHECKPOINT, ..Intervals::default() };
        Writer::new(self.directory.path().to_owned(), self.keys(), intervals)
    }

    fn keys(&self) -> PathBuf {
        self.directory.path().join("keys")
    }

    fn fill(&self, writer: &mut Writer, now: SystemTime) {
        for number in 0..RECORDS {
            let body = RecordBody::new("call").text("server", "fixture").number("n", number);
            writer.append(at(now), &body).expect("written");
        }
    }

    fn segments(&self) -> Vec<PathBuf> {
        let names = segments(self.directory.path()).expect("readable");
        names.iter().map(|name| self.directory.path().join(name.as_str())).collect()
    }

    fn faults(&self) -> Vec<Finding> {
        self.findings(FindingKind::Fault)
    }

    fn findings(&self, kind: FindingKind) -> Vec<Finding> {
        let keys = self.keys();
        self.findings_with(TrustedKey::Local { keys: &keys, log: self.directory.path() }.into(), kind)
    }

    fn findings_with(&self, trust: Trust<'_>, kind: FindingKind) -> Vec<Finding> {
        let mut findings = Vec::new();
        verify(self.directory.path(), LogLocation::Copy, &trust, &mut |finding| findings.push(finding))
            .expect("readable");
        findings.retain(|finding| finding.kind == kind);
        findings
    }

    /// Edits the lines of the log's only segment.
    fn edit(&self, change: impl FnOnce(&mut Vec<String>)) {
        let path = &self.segments()[0];
        let mut lines = lines(path);
        change(&mut lines);
        std::fs::write(path, lines.concat()).expect("written");
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a segment");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * 24 * 3_600 + 12 * 3_600)
}

fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|found| format!("{:?}:{:?} {}", found.line, found.seq, found.what)).collect()
}

/// Replaces the records from index `from` on with records that are signed with another key (`key`).
fn forged_from(lines: &mut Vec<String>, from: usize, key: &SigningKey) {
    let before = lines[from - 1].trim_end();
    let mut chain = Chain { seq: from as u64, prev: super::super::hash_chain::hash(before.as_bytes()) };
    let mut made = Vec::new();
    for line in lines.drain(from..) {
        let body = RecordBody::new("call").number("forged", 1);
        match line.contains("\"signature\"") {
            true => {
                let event = if line.contains("\"close\"") { "close" } else { "checkpoint" };
                chain.push_signed(&mut made, noon(), RecordBody::new(event), key, Some(&key.public_key()));
            }
            false => chain.push(&mut made, noon(), &body),
        }
    }
    lines.push(String::from_utf8(made).expect("text"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn tampering_with_a_segment_is_reported_with_the_record() {
    type Change = fn(&mut Vec<String>);
    // The line number of a record is its sequence number plus one.
    let rows: [(&str, Change, &str, Option<u64>); 16] = [
        ("a value changed", |lines| lines[5] = lines[5].replace("fixture", "fixturf"), "changed", Some(5)),
        (
            "a number changed",
            |lines| lines[5] = lines[5].replace("\"seq\":5", "\"seq\":7"),
            "changed",
            Some(5),
        ),
        ("no JSON any more", |lines| lines[5] = lines[5].replace("{\"seq", "[\"seq"), "changed", Some(5)),
        (
            "a checkpoint changed",
            |lines| lines[7] = lines[7].replace("2024-10-04T12", "2024-10-04T13"),
            "changed",
            Some(7),
        ),
        (
            "the first changed",
            |lines| lines[0] = lines[0].replace("\"process\":", "\"process\":1"),
            "changed",
            Some(0),
        ),
        ("dropped", |lines| drop(lines.remove(5)), "dropped", Some(5)),
        ("several dropped", |lines| drop(lines.drain(5..9)), "dropped", Some(5)),
        ("the first dropped", |lines| drop(lines.remove(0)), "dropped", Some(0)),
        (
            "inserted: one that fits to what is before",
            |lines| {
                let forged = lines[5].replace("fixture", "fixturf");
                lines.insert(5, forged);
            },
            "inserted",
            Some(5),
        ),
        ("inserted: no record", |lines| lines.insert(5, "{}\n".into()), "inserted", None),
        ("duplicated", |lines| lines.insert(6, lines[5].clone()), "inserted", Some(5)),
        ("a later one duplicated", |lines| lines.insert(5, lines[9].clone()), "inserted", Some(9)),
        ("two swapped", |lines| lines.swap(5, 6), "reordered", Some(6)),
        (
            "moved back",
            |lines| {
                let line = lines.remove(5);
                lines.insert(15, line);
            },
            "reordered",
            Some(5),
        ),
        (
            "moved forward",
            |lines| {
                let line = lines.remove(15);
                lines.insert(5, line);
            },
            "reordered",
            Some(15),
        ),
        (
            "added after the end",
            |lines| {
                let line = lines[5].clone();
                lines.push(line);
            },
            "inserted",
            Some(5),
        ),
    ];
    assert!(Log::written().faults().is_empty(), "control: {:?}", Log::written().faults());
    for (name, change, what, seq) in rows {
        let log = Log::written();
        log.edit(change);
        let faults = log.faults();
        let is_reported = faults
            .iter()
            .any(|found| found.what.starts_with(what) && found.seq == seq && found.line.is_some());
        assert!(is_reported, "{name}: {:?}", shown(&faults));
        // One change causes at most one further finding, from the index.
        assert!(faults.len() <= 2, "{name}: {:?}", shown(&faults));
    }
}

#[test]
#[allow(clippy::type_complexity, reason = "a table of test cases")]
fn truncated_removed_renamed_and_forged_segments_are_found() {
    let (other, key) = (Log::new(), SigningKey::generate().expect("a key"));
    let rows: [(&str, &dyn Fn(&Log), &str); 7] = [
        ("truncated", &|log| log.edit(|lines| lines.truncate(10)), "truncated"),
        (
            "truncated within a line",
            &|log| {
                log.edit(|lines| {
                    lines.truncate(10);
                    lines[9].truncate(20);
                });
            },
            "truncated",
        ),
        ("removed", &|log| std::fs::remove_file(&log.segments()[0]).expect("removed"), "removed"),
        (
            "the index removed",
            &|log| {
                std::fs::remove_file(log.directory.path().join(INDEX)).expect("removed");
            },
            "removed",
        ),
        ("made anew with another key", &|log| log.edit(|lines| forged_from(lines, 5, &key)), "made anew"),
        (
            "another name",
            &|log| {
                let path = &log.segments()[0];
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                let last = if name.ends_with("0.jsonl") { "1.jsonl" } else { "0.jsonl" };
                std::fs::rename(path, path.with_file_name(format!("{}{last}", &name[..name.len() - 7])))
                    .expect("renamed");
            },
            "renamed",
        ),
        (
            "a segment of somebody else",
            &|log| {
                other.fill(&mut other.writer(), noon());
                let theirs = &other.segments()[0];
                std::fs::copy(theirs, log.directory.path().join(theirs.file_name().expect("a name")))
                    .expect("copied");
            },
            "inserted",
        ),
    ];
    for (name, change, what) in rows {
        let log = Log::written();
        change(&log);
        let faults = log.faults();
        assert!(faults.iter().any(|found| found.what.starts_with(what)), "{name}: {:?}", shown(&faults));
    }
    // Verification with the key of another log.
    let log = Log::written();
    let other = key.public_key();
    let faults = log.findings_with(TrustedKey::Stored(&other).into(), FindingKind::Fault);
    assert!(faults.iter().any(|found| found.what.contains("another key")), "{:?}", shown(&faults));
}

#[test]
fn swapped_segments_and_a_removed_segment_are_found() {
    let log = Log::new();
    let mut writer = log.writer();
    for day in 0..3 {
        log.fill(&mut writer, noon() + Duration::from_secs(day * 24 * 3_600));
    }
    writer.close(at(noon() + Duration::from_secs(2 * 24 * 3_600)), "exit");
    let segments = log.segments();
    assert_eq!(segments.len(), 3, "a segment for each day: {segments:?}");
    assert!(log.faults().is_empty(), "control: {:?}", shown(&log.faults()));
    let texts: Vec<String> = segments.iter().map(|path| lines(path).concat()).collect();
    for (path, text) in [(&segments[0], &texts[1]), (&segments[1], &texts[0])] {
        std::fs::write(path, text).expect("written");
    }
    assert_eq!(log.faults().iter().filter(|found| found.what.starts_with("renamed")).count(), 2);
    for (path, text) in segments.iter().zip(&texts) {
        std::fs::write(path, text).expect("written");
    }
    assert!(log.faults().is_empty());
    std::fs::remove_file(&segments[1]).expect("removed");
    let faults = log.faults();
    assert!(faults.len() == 1 && faults[0].what.starts_with("removed"), "{:?}", shown(&faults));
}

#[test]
#[allow(clippy::type_complexity, reason = "a table of test cases")]
fn changes_to_the_index_are_found() {
    let rows: [(&str, fn(&mut Vec<String>)); 4] = [
        ("changed", |lines| lines[0] = lines[0].replace("\"opened\"", "\"expired\"")),
        ("dropped", |lines| drop(lines.remove(0))),
        ("swapped", |lines| lines.swap(0, 1)),
        ("duplicated", |lines| lines.insert(0, lines[0].clone())),
    ];
    for (name, change) in rows {
        let log = Log::written();
        let path = log.directory.path().join(INDEX);
        let mut lines = lines(&path);
        change(&mut lines);
        std::fs::write(&path, lines.concat()).expect("written");
        let faults = log.faults();
        assert!(faults.iter().any(|found| found.file == INDEX), "{name}: {:?}", shown(&faults));
    }
}

#[test]
fn the_log_of_a_killed_process_has_no_faults() {
    let log = Log::new();
    log.fill(&mut log.writer(), noon());
    let notes = |log: &Log| shown(&log.findings(FindingKind::Note)).join("\n");
    assert!(log.faults().is_empty(), "{:?}", shown(&log.faults()));
    assert!(notes(&log).contains("2 records are after the last signature"), "{}", notes(&log));
    log.edit(|lines| {
        let last = lines.last_mut().expect("a line");
        last.truncate(last.len() / 2);
    });
    assert!(log.faults().is_empty(), "{:?}", shown(&log.faults()));
    assert!(notes(&log).contains("incomplete"), "{}", notes(&log));
    // However long the incomplete line is.
    log.edit(|lines| lines.last_mut().expect("a line").push_str(&"x".repeat(2 * 1024 * 1024)));
    assert!(log.faults().is_empty(), "{:?}", shown(&log.faults()));
    assert!(notes(&log).contains("incomplete"), "{}", notes(&log));
    // Another process continues in a segment of its own.
    let mut writer = log.writer();
    log.fill(&mut writer, noon());
    writer.close(at(noon()), "exit");
    assert!(log.faults().is_empty(), "{:?}", shown(&log.faults()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Verification detects a change of any byte of a closed segment.
    #[test]
    fn any_changed_byte_is_found(at in any::<prop::sample::Index>(), mask in 1_u8..=255) {
        let log = Log::written();
        let path = &log.segments()[0];
        let mut bytes = std::fs::read(path).expect("a segment");
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
        std::fs::write(path, &bytes).expect("written");
        prop_assert!(!log.faults().is_empty(), "byte {at} ^ {mask}");
    }

    /// Verification detects any removed, repeated or moved lines.
    #[test]
    fn any_other_order_of_lines_is_found(order in prop::collection::vec(0_usize..RECORDS + 5, 0..RECORDS + 8)) {
        let log = Log::written();
        log.edit(|lines| {
            let count = lines.len();
            *lines = order.iter().filter(|at| **at < count).map(|at| lines[*at].clone()).collect();
        });
        let is_as_it_was = order.iter().copied().eq(0..RECORDS + 5);
        prop_assert_eq!(log.faults().is_empty(), is_as_it_was);
    }

    /// Verification detects the removal of any range of bytes.
    #[test]
    fn any_removed_range_is_found(from in any::<prop::sample::Index>(), length in 1_usize..2_000) {
        let log = Log::written();
        let path = &log.segments()[0];
        let mut bytes = std::fs::read(path).expect("a segment");
        let from = from.index(bytes.len());
        bytes.drain(from..(from + length).min(bytes.len()));
        std::fs::write(path, &bytes).expect("written");
        prop_assert!(!log.faults().is_empty());
    }
}
