//! Verification of the audit log: compares stored programs with the audit records that refer to them.

use std::collections::HashSet;
use std::path::PathBuf;

use super::super::hash_chain::{Hash, hash};
use super::super::program_store::{self, ProgramComparison, ProgramRecord};
use super::chain_members::ChainMembers;
use super::{Finding, FindingKind, LogLocation};

/// Compares stored programs with audit records, each program once.
pub(super) struct ProgramCheck {
    directory: PathBuf,
    location: LogLocation,
    /// Hashes of the references to stored programs (language, `code` and `code_kept` of an audit record) that
    /// were already checked.
    seen: HashSet<Hash>,
    /// Number of stored programs whose file matches the audit records.
    pub(super) verified: u64,
    /// Number of programs that cannot be compared because the directory of stored programs is missing, although audit
    /// records say that they were stored. 0 if the directory exists.
    absent: u64,
}

impl ProgramCheck {
    pub(super) fn new(directory: PathBuf, location: LogLocation) -> Self {
        Self { directory, location, seen: HashSet::new(), verified: 0, absent: 0 }
    }

    /// If an audit record refers to a stored program that was not compared yet, compares the program with the record.
    /// Calls `report` if they differ, or if the program cannot be read or verified.
    pub(super) fn check(&mut self, members: &ChainMembers, report: &mut dyn FnMut(FindingKind, String)) {
        let (Some(code), Some(language)) = (&members.code, &members.language) else { return };
        if self.location == LogLocation::ChainOnly {
            return;
        }
        let kept = members.code_kept.as_deref();
        let key = hash(format!("{language} {code} {}", kept.unwrap_or_default()).as_bytes());
        if !self.seen.insert(key) {
            return;
        }
        if !program_store::directory_exists(&self.directory) {
            self.absent += u64::from(kept.is_some());
            return;
        }
        match program_store::compare(&self.directory, ProgramRecord { language, code, kept }) {
            Ok(ProgramComparison::Genuine(_) | ProgramComparison::Redacted(_)) => self.verified += 1,
            Ok(ProgramComparison::Absent) => {}
            Ok(ProgramComparison::Unverifiable(_)) => report(
                FindingKind::Note,
                "its program is stored with secrets redacted, and this record has no hash of the redacted text: the program cannot be verified".into(),
            ),
            Ok(ProgramComparison::Replaced { file, found }) => report(
                FindingKind::Fault,
                format!("replaced: {} is not the program that ran: {found}", file.display()),
            ),
            Ok(ProgramComparison::Removed { file }) => {
                report(FindingKind::Fault, format!("removed: the stored program of this run, {}", file.display()));
            }
            Err(error) => report(FindingKind::Fault, format!("its program cannot be read: {error}")),
        }
    }

    /// Reports that the directory of stored programs is missing, if audit records refer to stored programs.
    pub(super) fn finish(&self, report: &mut dyn FnMut(Finding)) {
        if self.absent == 0 {
            return;
        }
        let count = self.absent;
        let (kind, what) = match self.location {
            LogLocation::Original => (
                FindingKind::Fault,
                format!("removed: the directory with the {count} stored programs of these runs"),
            ),
            LogLocation::Copy | LogLocation::ChainOnly => (
                FindingKind::Note,
                format!("the directory is missing, so {count} programs were not verified"),
            ),
        };
        report(Finding { kind, file: "code".into(), line: None, seq: None, what });
    }
}
