//! The programs beside the log, each against the records that name it.

use std::collections::HashSet;
use std::path::PathBuf;

use super::super::code::{self, Kept, Recorded};
use super::super::line::{Hash, hash};
use super::lines::Members;
use super::{Finding, Kind, Place};

/// Looks at each program once.
pub(super) struct Programs {
    directory: PathBuf,
    place: Place,
    /// What records say, shortened.
    seen: HashSet<Hash>,
    /// Programs whose files are the ones that were kept.
    pub(super) verified: u64,
    /// Programs that were kept, where the directory of programs is not there.
    absent: u64,
}

impl Programs {
    pub(super) fn new(directory: PathBuf, place: Place) -> Self {
        Self { directory, place, seen: HashSet::new(), verified: 0, absent: 0 }
    }

    /// Looks at the program that a record names, if it names one.
    pub(super) fn look(&mut self, members: &Members, tell: &mut dyn FnMut(Kind, String)) {
        let (Some(code), Some(language)) = (&members.code, &members.language) else { return };
        if self.place == Place::ChainAlone {
            return;
        }
        let kept = members.code_kept.as_deref();
        let key = hash(format!("{language} {code} {}", kept.unwrap_or_default()).as_bytes());
        if !self.seen.insert(key) {
            return;
        }
        if !code::is_there(&self.directory) {
            self.absent += u64::from(kept.is_some());
            return;
        }
        match code::compare(&self.directory, Recorded { language, code, kept }) {
            Ok(Kept::Genuine(_) | Kept::Redacted(_)) => self.verified += 1,
            Ok(Kept::Absent) => {}
            Ok(Kept::Unverifiable(_)) => tell(
                Kind::Note,
                "its program is kept without secrets, and this record has no hash of that text: it may be another one".into(),
            ),
            Ok(Kept::Replaced { file, found }) => tell(
                Kind::Fault,
                format!("replaced: {} is not the program that ran: {found}", file.display()),
            ),
            Ok(Kept::Removed { file }) => {
                tell(Kind::Fault, format!("removed: the program of this run, {}", file.display()));
            }
            Err(error) => tell(Kind::Fault, format!("its program cannot be read: {error}")),
        }
    }

    /// Says that the directory of programs is not there, if records say that some were kept.
    pub(super) fn finish(&self, tell: &mut dyn FnMut(Finding)) {
        if self.absent == 0 {
            return;
        }
        let count = self.absent;
        let (kind, what) = match self.place {
            Place::Home => {
                (Kind::Fault, format!("removed: the directory with {count} programs of these runs"))
            }
            Place::Copy | Place::ChainAlone => {
                (Kind::Note, format!("it is not here, so that {count} programs were not verified"))
            }
        };
        tell(Finding { kind, file: "code".into(), line: None, seq: None, what });
    }
}
