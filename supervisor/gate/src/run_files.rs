//! The files of one execution: those that the person gave to it, those that its program transfers in pieces, and those
//! that it returns.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::schema::BlockingSlot;
use super::transfers::Transfers;
use lockhouse_stores::result_files::StoredFile;

/// Maximum number of files that one run returns, apart from those in its value.
/// Bound: values and answers.
pub(super) const RETURNED_MAX: usize = 20;
/// Maximum number of files that were not stored and that an answer names.
const LEFT_OUT_MAX: usize = 20;

/// A file that the person gave to one run, and that is open already.
#[derive(Clone, Debug)]
pub struct GivenFile {
    /// The name of the file in the working directory of the program.
    pub name: String,
    /// The path of the file, absolute and without symbolic links.
    pub path: PathBuf,
    pub file: Arc<File>,
    /// Size in bytes.
    pub bytes: u64,
}

/// A file that a program returned and that is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutFile {
    pub name: String,
    pub reason: String,
}

/// The files that a run returned: those that are stored, and those that are not.
#[derive(Clone, Debug, Default)]
pub struct ReturnedFiles {
    pub stored: Vec<StoredFile>,
    pub left_out: Vec<LeftOutFile>,
}

/// The files of one execution.
#[derive(Debug, Default)]
pub struct RunFiles {
    pub(super) given: Vec<GivenFile>,
    pub(super) transfers: Transfers,
    returned: Mutex<ReturnedFiles>,
    /// Lets only one task of the execution work on files at one time.
    pub(super) slot: BlockingSlot,
}

impl RunFiles {
    pub fn new(given: Vec<GivenFile>) -> Self {
        Self { given, ..Self::default() }
    }

    /// Returns the files that the run has returned, and forgets them.
    pub fn take_returned(&self) -> ReturnedFiles {
        std::mem::take(&mut *self.returned.lock())
    }

    pub(super) fn add_stored(&self, stored: StoredFile) {
        self.returned.lock().stored.push(stored);
    }

    pub(super) fn add_left_out(&self, name: &str, reason: String) {
        let mut returned = self.returned.lock();
        if returned.left_out.len() < LEFT_OUT_MAX {
            returned
                .left_out
                .push(LeftOutFile { name: lockhouse_stores::result_files::safe_name(name), reason });
        }
    }

    pub(super) fn stored_count(&self) -> usize {
        self.returned.lock().stored.len()
    }
}
