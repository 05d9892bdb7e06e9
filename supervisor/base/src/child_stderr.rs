//! What a child process writes to its standard error: kept for error messages, and logged line by line.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Notify;

use crate::token_bucket::Allowance;

const LINES_KEPT: usize = 5;
const LINE_CHARS_MAX: usize = 400;

/// Bytes of a line that are read: what is edited out of it can have as many as a variable of the environment.
const LINE_BYTES_MAX: usize = 128 * 1024 + 4 * LINE_CHARS_MAX;

/// Bytes that are read at once, and how many more each second: a child that writes faster waits for us. Each line counts
/// more than its own bytes, since a short one takes time as well.
const BURST_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;
const LINE_BYTES: usize = 64;

/// How long the last lines of a process that has ended may take to be read.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// The last lines.
#[derive(Clone, Debug, Default)]
pub struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: Arc<Notify>,
}

impl LastLines {
    /// Reads until the child closes it. Long lines are cut: a child may write what it likes for as long as it likes.
    pub fn follow(&self, child: String, stderr: ChildStderr) {
        self.follow_edited(child, stderr, str::to_owned);
    }

    /// The same; each line goes through `edit` before anything else is done with it.
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
            let mut allowance = Allowance::new(BURST_BYTES, BYTES_PER_SECOND);
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                let ends = buffer[..count].iter().filter(|byte| **byte == b'\n').count();
                if let Err(wait) = allowance.take(count + ends * LINE_BYTES) {
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
        let line: String = line.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect();
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

    /// The last lines of a process that has ended, as a clause for an error message.
    pub async fn told(&self) -> String {
        let _ = tokio::time::timeout(END_TIMEOUT, self.ended.notified()).await;
        let lines = self.lines.lock();
        match lines.is_empty() {
            true => String::new(),
            false => format!("; its last words: {}", lines.iter().cloned().collect::<Vec<_>>().join(" | ")),
        }
    }
}
