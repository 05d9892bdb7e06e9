//! Reads the lines that the approver types on the terminal of this process.
//!
//! Nothing is read ahead: input typed before a question was shown stays in the terminal's buffer and is discarded
//! there. Reads never block, because another program on the same terminal may have taken the input first.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::termios::{FlushArg, tcflush};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::cli::service_account;

/// The maximum length of a typed line in bytes. A longer line is split, and none of its pieces is a valid answer.
const LINE_BYTES_MAX: usize = 4 * 1024;
const STDIN: &str = "/proc/self/fd/0";
/// The path of the controlling terminal of this process. Opening it succeeds even if the terminal device on standard
/// input belongs to another user.
const CONTROLLING_TERMINAL: &str = "/dev/tty";

/// The terminal of this process, as a source of lines.
#[derive(Debug)]
pub(in crate::cli) struct Keyboard {
    /// The terminal, opened as a separate open file description, so that O_NONBLOCK does not affect other programs that
    /// read from the terminal. `None` if the terminal cannot be read.
    terminal: Option<AsyncFd<File>>,
    /// The bytes of a line whose end was not read yet.
    line: Vec<u8>,
}

impl Keyboard {
    pub(in crate::cli) fn new() -> Self {
        let terminal = open_terminal()
            .and_then(register_for_reads)
            .map_err(|error| tracing::error!("answers cannot be read from this terminal: {error}"));
        Self { terminal: terminal.ok(), line: Vec::new() }
    }

    /// Whether lines can be read from the terminal.
    pub(super) fn is_readable(&self) -> bool {
        self.terminal.is_some()
    }

    /// Returns the next line that is typed, or `None` if the input has ended or the terminal cannot be read.
    /// Cancel-safe: no input is lost when the future is dropped.
    pub(in crate::cli) async fn next_line(&mut self) -> Option<String> {
        let terminal = self.terminal.as_ref()?;
        loop {
            let mut ready = terminal.readable().await.ok()?;
            // In canonical mode a read returns at most one line.
            let mut bytes = [0; LINE_BYTES_MAX];
            match ready.try_io(|terminal| terminal.get_ref().read(&mut bytes)) {
                Ok(Ok(count @ 1..)) => self.line.extend_from_slice(&bytes[..count]),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(Ok(0) | Err(_)) => return None,
                // Another program has read the line first.
                Err(_) => continue,
            }
            if self.line.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                return Some(String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim().to_owned());
            }
        }
    }

    /// Discards all input that was typed so far on the terminal, including incomplete lines.
    pub(super) fn discard_input(&mut self) {
        self.line.clear();
        if let Some(terminal) = &self.terminal
            && let Err(error) = tcflush(terminal.get_ref(), FlushArg::TCIFLUSH)
        {
            // Input that may predate the question must not count as an answer to it.
            tracing::error!("input typed before the question cannot be discarded: {error}");
            self.terminal = None;
        }
    }
}

fn open_terminal() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY);
    let own = || options.open(STDIN).or_else(|_| options.open(CONTROLLING_TERMINAL));
    service_account::terminal().unwrap_or_else(own)
}

#[allow(unsafe_code, reason = "AsyncFd requires that the descriptor stays the same")]
fn register_for_reads(terminal: File) -> io::Result<AsyncFd<File>> {
    // SAFETY: a `File` keeps the same descriptor until it is dropped, which closes it.
    Ok(unsafe { AsyncFd::register_with_interest(terminal, Interest::READABLE) }?)
}
