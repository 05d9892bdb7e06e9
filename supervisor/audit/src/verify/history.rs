//! A log with a history, for the tests of verification: three processes on three days, with copies of earlier states.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lockhouse_protocol::Language;
use tempfile::TempDir;

use super::super::chain_writer::{Intervals, Writer};
use super::super::hash_chain::{RecordBody, hash};
use super::super::log_head::LogHead;
use super::super::moment::Moment;
use super::super::moment::tests::at;
use super::super::program_store::ProgramStore;
use super::super::segment::segments;
use super::super::segment_index::INDEX;
use super::super::signing::PublicKey;
use super::*;

pub(super) const DAY: Duration = Duration::from_secs(24 * 3_600);
const PROGRAM: &str = "print(1)";

/// A log, its keys, and a copy of both from an earlier time.
pub(super) struct History {
    place: TempDir,
    /// The head at the time of the copy.
    pub(super) early_head: LogHead,
    pub(super) head: LogHead,
    /// The key of the first line of the index.
    pub(super) first_key: PublicKey,
}

/// Returns a moment at noon, some days after the first one.
pub(super) fn noon(days: u32) -> Moment {
    at(SystemTime::UNIX_EPOCH + DAY * 20_000 + DAY / 2 + DAY * days)
}

pub(super) fn fill(writer: &mut Writer, now: Moment) {
    for number in 0..20 {
        writer
            .append(now, &RecordBody::new("call").text("server", "fixture").number("n", number))
            .expect("written");
    }
}

impl History {
    /// A closed segment of the first day; an open one of the second day, of which the early copy has a part; and an open one
    /// of the third day.
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let (log, keys) = (place.path().join("log"), place.path().join("keys"));
        std::fs::create_dir(&log).expect("a directory");
        let writer =
            || Writer::new(log.clone(), keys.clone(), Intervals { records: 6, ..Intervals::default() });
        let mut first = writer();
        let code = HEXLOWER.encode(&hash(PROGRAM.as_bytes()));
        ProgramStore::new(log.clone()).keep(Language::Python, PROGRAM, &code).expect("kept");
        let ran = RecordBody::new("execution")
            .text("language", "python")
            .text("code", &code)
            .text("code_kept", &code);
        first.append(noon(0), &ran).expect("written");
        fill(&mut first, noon(0));
        first.close(noon(0), "exit");
        let mut second = writer();
        fill(&mut second, noon(1));
        let copy = |from: &Path, to: &str| copy_directory(from, &place.path().join(to));
        copy(&log, "early-log");
        copy(&keys, "early-keys");
        let head = || LogHead::read(&log, &keys).expect("a head");
        let early_head = head();
        fill(&mut second, noon(1));
        fill(&mut writer(), noon(2));
        let first_line = std::fs::read_to_string(log.join(INDEX)).expect("an index");
        let line: serde_json::Value =
            serde_json::from_str(first_line.lines().next().unwrap_or_default()).expect("JSON");
        let first_key = PublicKey::from_hex(line["key"].as_str().unwrap_or_default()).expect("a key");
        let head = head();
        Self { place, early_head, head, first_key }
    }

    pub(super) fn log(&self) -> PathBuf {
        self.place.path().join("log")
    }

    pub(super) fn keys(&self) -> PathBuf {
        self.place.path().join("keys")
    }

    pub(super) fn index(&self) -> PathBuf {
        self.log().join(INDEX)
    }

    pub(super) fn segment(&self, number: usize) -> PathBuf {
        let name = &segments(&self.log()).expect("readable")[number];
        self.log().join(name.as_str())
    }

    pub(super) fn writer(&self) -> Writer {
        Writer::new(self.log(), self.keys(), Intervals { records: 6, ..Intervals::default() })
    }

    /// Restores the log of the early copy, or its keys.
    pub(super) fn restore(&self, what: &str) {
        let to = self.place.path().join(what);
        std::fs::remove_dir_all(&to).expect("removed");
        copy_directory(&self.place.path().join(format!("early-{what}")), &to);
    }

    pub(super) fn early(&self, path: &Path) -> PathBuf {
        self.place.path().join("early-log").join(path.file_name().expect("a name"))
    }

    pub(super) fn findings(&self, trust: Trust<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        verify(&self.log(), LogLocation::Original, &trust, &mut |finding| findings.push(finding))
            .expect("readable");
        findings
    }

    /// The faults that verification with the local key finds.
    pub(super) fn faults(&self, head: Option<&LogHead>) -> Vec<String> {
        let (keys, log) = (self.keys(), self.log());
        let trust = Trust { head, ..TrustedKey::Local { keys: &keys, log: &log }.into() };
        faults(self.findings(trust))
    }

    /// The faults that verification with a key that was stored elsewhere finds.
    pub(super) fn faults_with(&self, key: &PublicKey) -> Vec<String> {
        faults(self.findings(TrustedKey::Stored(key).into()))
    }
}

pub(super) fn faults(findings: Vec<Finding>) -> Vec<String> {
    let faults = findings.into_iter().filter(|finding| finding.kind == FindingKind::Fault);
    faults.map(|finding| format!("{}: {}", finding.file, finding.what)).collect()
}

pub(super) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

pub(super) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("readable");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Edits the lines of a file.
pub(super) fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines = lines(path);
    change(&mut lines);
    std::fs::write(path, lines.concat()).expect("written");
}
