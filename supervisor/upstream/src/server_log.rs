//! The log file with an upstream server's standard error, which `lockhouse server logs` shows.
//!
//! Each line is `TIME PID TEXT`, with the process ID of Lockhouse. Several Lockhouse processes may append to one file,
//! so each line is written with one system call.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lockhouse_base::files;
use lockhouse_base::log_throttle::LogThrottle;

/// Maximum number of bytes of the log file of a server. A larger one is renamed to `.log.1`, in place of the previous `.log.1`.
/// Bound: upstream servers.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Number of lines that a server may write in one burst. After that, at most one line is written per `LINE_EVERY`, so that
/// a server cannot fill the disk.
/// Bound: upstream servers.
const BURST_LINES: u32 = 200;
const LINE_EVERY: Duration = Duration::from_millis(50);

/// The log file of one upstream server.
pub(super) struct ServerLog {
    path: PathBuf,
    file: Option<File>,
    throttle: LogThrottle,
}

impl ServerLog {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, throttle: LogThrottle::new(BURST_LINES, LINE_EVERY) }
    }

    /// Writes one line of the server's output to the log file. Leaves out lines above the rate limit, and later writes
    /// how many were left out. If the file cannot be written, the line is lost.
    pub(super) fn write_line(&mut self, text: &str) {
        let Some(left_out) = self.throttle.admit() else { return };
        let written = match left_out {
            0 => Ok(()),
            count => self.write(&format!("[{count} lines were left out: too many in a short time]")),
        };
        if let Err(error) = written.and_then(|()| self.write(text)) {
            tracing::debug!("{} cannot be written: {error}", self.path.display());
            self.file = None;
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let write_line = format!("{time} {} {text}\n", std::process::id());
        let mut file = self.open()?;
        file.write_all(write_line.as_bytes())
    }

    fn open(&mut self) -> io::Result<&File> {
        // Another process may have renamed the open file. Lines written to it are in the older file then.
        let is_full =
            self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|m| m.len() > FILE_BYTES_MAX));
        if is_full {
            self.file = None;
            if std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > FILE_BYTES_MAX) {
                std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            }
        }
        if self.file.is_none() {
            files::create_private_directory(self.path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
            self.file = Some(files::open_to_append(&self.path)?);
        }
        self.file.as_ref().ok_or(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("logs/x.log");
        let mut log = ServerLog::new(&path);
        let many = 10 * BURST_LINES as usize;
        for number in 0..many {
            log.write_line(&format!("line {number}"));
        }
        let text = || std::fs::read_to_string(&path).expect("a log");
        let written = text().lines().count();
        assert!((BURST_LINES as usize..many / 2).contains(&written), "{written}");
        // A line is written again as soon as the limit permits.
        while !text().ends_with("after\n") {
            log.write_line("after");
        }
        assert!(text().contains(" lines were left out: too many in a short time]\n"), "{}", text());
    }

    #[test]
    fn a_long_log_is_put_aside_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.log");
        let mut log = ServerLog::new(&path);
        log.write_line("first");
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX as usize + 1]).expect("a file");
        log.write_line("second");
        let text = std::fs::read_to_string(&path).expect("a log");
        assert!(text.ends_with("second\n") && text.lines().count() == 1, "{} bytes", text.len());
        assert!(directory.path().join("x.log.1").exists());
    }
}
