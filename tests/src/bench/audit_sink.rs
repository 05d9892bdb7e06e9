//! An audit sink of the measured build: a process of its own that writes the audit log.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::Fallible;

const START_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// A running audit sink. It ends when this value is dropped.
pub(crate) struct AuditSink {
    process: Child,
    socket: PathBuf,
    _scratch: tempfile::TempDir,
}

impl AuditSink {
    pub(crate) fn start(lockhouse: &Path) -> Fallible<Self> {
        let scratch = tempfile::tempdir()?;
        let (socket, log) = (scratch.path().join("sink.sock"), scratch.path().join("log"));
        let mut command = Command::new(lockhouse);
        let command = command.args(["audit", "sink", "--listen"]).arg(&socket).arg("--directory").arg(log);
        let sink = Self { process: command.spawn()?, socket, _scratch: scratch };
        let started = Instant::now();
        while UnixStream::connect(&sink.socket).is_err() {
            if started.elapsed() > START_TIMEOUT {
                return Err("the audit sink does not accept connections".into());
            }
            std::thread::sleep(RETRY_EVERY);
        }
        Ok(sink)
    }

    /// Returns the configuration of an engine that uses this sink.
    pub(crate) fn configuration(&self) -> String {
        format!("[audit]\nsink = \"unix:{}\"\n", self.socket.display())
    }
}

impl Drop for AuditSink {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
