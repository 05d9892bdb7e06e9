//! Lines that a person types on the terminal of this process.
//!
//! Nothing is read ahead: what was typed before a question was shown still lies with the terminal, and is flushed there. Other
//! programs may read from the same terminal, so a read never waits: one of them may have been faster.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::termios::{FlushArg, tcflush};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes of a line. What is longer arrives in pieces, none of which is an answer.
const LINE_BYTES_MAX: usize = 4 * 1024;
const STDIN: &str = "/proc/self/fd/0";
/// The terminal of this process, which it can open where standard input is another user's.
const OWN: &str = "/dev/tty";

/// The terminal on standard input.
#[derive(Debug)]
pub(in crate::cli) struct Keyboard {
    /// Opened once more, so that other programs' reads wait as before. None where it cannot be read.
    terminal: Option<AsyncFd<File>>,
    /// What was read of a line that has no end yet.
    line: Vec<u8>,
}

impl Keyboard {
    pub(in crate::cli) fn new() -> Self {
        let terminal = opened()
            .and_then(watched)
            .map_err(|error| tracing::error!("answers cannot be read from this terminal: {error}"));
        Self { terminal: terminal.ok(), line: Vec::new() }
    }

    /// Whether lines can be read.
    pub(super) fn is_there(&self) -> bool {
        self.terminal.is_some()
    }

    /// The next line. None at the end of the input. It may be dropped while it waits, and nothing is lost.
    pub(super) async fn line(&mut self) -> Option<String> {
        let terminal = self.terminal.as_ref()?;
        loop {
            let mut ready = terminal.readable().await.ok()?;
            // Of a terminal that gives lines, one at most.
            let mut bytes = [0; LINE_BYTES_MAX];
            match ready.try_io(|terminal| terminal.get_ref().read(&mut bytes)) {
                Ok(Ok(count @ 1..)) => self.line.extend_from_slice(&bytes[..count]),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(Ok(0) | Err(_)) => return None,
                // Somebody else has read it.
                Err(_) => continue,
            }
            if self.line.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                return Some(String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim().to_owned());
            }
        }
    }

    /// Forgets what was typed so far, whole lines or not.
    pub(super) fn forget(&mut self) {
        self.line.clear();
        if let Some(terminal) = &self.terminal
            && let Err(error) = tcflush(terminal.get_ref(), FlushArg::TCIFLUSH)
        {
            // What cannot be told from an answer is none.
            tracing::error!("what was typed before the question cannot be forgotten: {error}");
            self.terminal = None;
        }
    }
}

fn opened() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY);
    options.open(STDIN).or_else(|_| options.open(OWN))
}

#[allow(unsafe_code, reason = "tokio wants a promise about the descriptor")]
fn watched(terminal: File) -> io::Result<AsyncFd<File>> {
    // SAFETY: a file always gives the same descriptor, and closes it when it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(terminal, Interest::READABLE) }?)
}
