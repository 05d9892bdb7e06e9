//! What a server writes to its standard error, kept for `lockhouse server logs`.
//!
//! Lines are `TIME PID TEXT`. Several processes of ours may append to one file; each line is one write.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use lockhouse_base::files;

/// The file is renamed to `.log.1`, in place of the one before, once it is so long.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Lines that are written at once, and how many more each second: a server that complains without end fills no disk.
const BURST_LINES: f64 = 200.0;
const LINES_PER_SECOND: f64 = 20.0;

/// The log of one server.
pub(super) struct ServerLog {
    path: PathBuf,
    file: Option<File>,
    budget: f64,
    counted: Instant,
    left_out: u64,
}

impl ServerLog {
    pub(super) fn at(path: &Path) -> Self {
        let (path, counted) = (path.to_owned(), Instant::now());
        Self { path, file: None, budget: BURST_LINES, counted, left_out: 0 }
    }

    /// Writes one line, or counts it. A log that cannot be written costs nothing but itself.
    pub(super) fn line(&mut self, text: &str) {
        let elapsed = std::mem::replace(&mut self.counted, Instant::now()).elapsed();
        self.budget = (self.budget + elapsed.as_secs_f64() * LINES_PER_SECOND).min(BURST_LINES);
        if self.budget < 1.0 {
            self.left_out += 1;
            return;
        }
        self.budget -= 1.0;
        let written = match std::mem::take(&mut self.left_out) {
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
        let line = format!("{time} {} {text}\n", std::process::id());
        let mut file = self.open()?;
        file.write_all(line.as_bytes())
    }

    fn open(&mut self) -> io::Result<&File> {
        // Another process may have renamed the file that is open here: what is written to it is not lost, only old.
        let is_full =
            self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|m| m.len() > FILE_BYTES_MAX));
        if is_full {
            self.file = None;
            if std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > FILE_BYTES_MAX) {
                std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            }
        }
        if self.file.is_none() {
            files::private_directory(self.path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
            self.file = Some(files::open_to_append(&self.path)?);
        }
        self.file.as_ref().ok_or(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// After so long a budget is full again.
    const RECOVERY: Duration = Duration::from_secs((BURST_LINES / LINES_PER_SECOND) as u64);

    #[test]
    fn a_flood_is_cut_and_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("logs/x.log");
        let mut log = ServerLog::at(&path);
        let many = 10 * BURST_LINES as usize;
        for number in 0..many {
            log.line(&format!("line {number}"));
        }
        let text = || std::fs::read_to_string(&path).expect("a log");
        let written = text().lines().count();
        assert!((BURST_LINES as usize..many / 2).contains(&written), "{written}");
        log.counted -= RECOVERY;
        log.line("after");
        let told = format!("[{} lines were left out", many - written);
        assert!(text().contains(&told) && text().ends_with("after\n"), "{told}");
    }

    #[test]
    fn a_long_log_is_put_aside_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.log");
        let mut log = ServerLog::at(&path);
        log.line("first");
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX as usize + 1]).expect("a file");
        log.line("second");
        let text = std::fs::read_to_string(&path).expect("a log");
        assert!(text.ends_with("second\n") && text.lines().count() == 1, "{} bytes", text.len());
        assert!(directory.path().join("x.log.1").exists());
    }
}
