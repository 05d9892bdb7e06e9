//! The processes that have a socket open.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::confined_mark;

/// The open directory of a process in `/proc`. A process id can be used again; the open directory is always that of the
/// same process.
struct ProcessDirectory(File);

/// Whether a process has this socket open, and no process of a sandboxed upstream server has. `false` if no process is
/// found: those of other accounts and of other PID namespaces do not show their files.
pub(super) fn are_outside_of_sandbox(inode: u64) -> bool {
    let link = PathBuf::from(format!("socket:[{inode}]"));
    let mut is_open = false;
    for process in processes() {
        // A process whose files cannot be read has ended, or does not show them.
        if process.has_open(&link).unwrap_or(false) {
            if process.is_marked().unwrap_or(true) {
                return false;
            }
            is_open = true;
        }
    }
    is_open
}

fn processes() -> impl Iterator<Item = ProcessDirectory> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process =
        |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    entries.filter(is_process).filter_map(|entry| File::open(entry.path()).ok().map(ProcessDirectory))
}

impl ProcessDirectory {
    fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string())
    }

    /// Whether a descriptor of the process is this link.
    fn has_open(&self, link: &Path) -> io::Result<bool> {
        let mut descriptors = fs::read_dir(self.path().join("fd"))?.flatten();
        Ok(descriptors.any(|entry| fs::read_link(entry.path()).is_ok_and(|found| found == link)))
    }

    /// Whether this is a process of a sandboxed upstream server.
    fn is_marked(&self) -> io::Result<bool> {
        confined_mark::is_in(&fs::read_to_string(self.path().join("limits"))?)
    }
}
