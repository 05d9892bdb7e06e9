//! Reads the standard error of a child process, such as an upstream server or a zygote: logs each line at debug level
//! and keeps the last lines for error messages.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Notify;

use crate::plain_text::plain_text;
use crate::token_bucket::TokenBucket;

const LINES_KEPT: usize = 5;
const LINE_CHARS_MAX: usize = 400;

/// Maximum number of bytes of one line that are read; the rest of the line is dropped. More than [`LINE_CHARS_MAX`]
/// characters are read, because lines are redacted before they are truncated, and a secret from the environment can
/// have up to 128 KiB.
const LINE_BYTES_MAX: usize = 128 * 1024 + 4 * LINE_CHARS_MAX;

/// Number of bytes of a child's standard error that are read without delay (4 MiB). After that, at most
/// `BYTES_PER_SECOND` (1 MiB) are read in each second, and a child process that writes faster blocks on its pipe. Each
/// line is charged `LINE_BYTES` (64) more than its length, because short lines take time as well.
/// Bound: upstream servers.
const BURST_BYTES: u32 = 4 * 1024 * 1024;
const BYTES_PER_SECOND: u32 = 1024 * 1024;
const LINE_BYTES: usize = 64;

/// How long [`LastLines::error_clause`] waits for the last lines of a process that has exited.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// The last [`LINES_KEPT`] lines that a child process wrote to its standard error. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: Arc<Notify>,
}

impl LastLines {
    /// Spawns a task that reads the standard error of a child process until the process closes it. The task logs each
    /// line and keeps the last lines. `child` is the name of the process in log entries. Long lines are truncated.
    pub fn follow(&self, child: String, stderr: ChildStderr) {
        self.follow_edited(child, stderr, str::to_owned);
    }

    /// Spawns a task that reads the standard error of a child process like [`Self::follow`]. The task passes each line
    /// through `edit`, such as a redaction, before the line is logged or kept.
    pub fn follow_edited(
        &self,
        child: String,
        stderr: ChildStderr,
        mut edit: impl FnMut(&str) -> String + Send + 'static,
    ) {
        let lines = self.clone();
        tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr);
            let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
            let mut budget =
                TokenBucket::new(Duration::from_secs(1) / BYTES_PER_SECOND, BURST_BYTES, Instant::now());
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                let ends = buffer[..count].iter().filter(|byte| **byte == b'\n').count();
                let cost = (count + ends * LINE_BYTES) as u32;
                if let Some(wait) = budget.charge(cost, Instant::now()) {
                    tokio::time::sleep(wait).await;
                }
                for &byte in &buffer[..count] {
                    match byte {
                        b'\n' => {
                            lines.push(&child, &edit(&String::from_utf8_lossy(&line)));
                            line.clear();
                        }
                        _ if line.len() < LINE_BYTES_MAX => line.push(byte),
                        _ => {}
                    }
                }
            }
            lines.push(&child, &edit(&String::from_utf8_lossy(&line)));
            lines.ended.notify_one();
        });
    }

    fn push(&self, child: &str, line: &str) {
        let line = plain_text(line, LINE_CHARS_MAX);
        if line.trim().is_empty() {
            return;
        }
        tracing::debug!(%child, "stderr: {line}");
        let mut lines = self.lines.lock();
        if lines.len() == LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns the last lines of a child process that has exited, as a clause to append to an error message. Returns an
    /// empty text if the process wrote no lines.
    pub async fn error_clause(&self) -> String {
        let _ = tokio::time::timeout(END_TIMEOUT, self.ended.notified()).await;
        let lines = self.lines.lock();
        match lines.is_empty() {
            true => String::new(),
            false => {
                format!("; last lines on stderr: {}", lines.iter().cloned().collect::<Vec<_>>().join(" | "))
            }
        }
    }
}
